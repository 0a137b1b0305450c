/** A bounded queue between one producer that never waits and one consumer that iterates. */

/** What to do at the bound is the producer's decision: `push` says whether the item was taken. */
export class AsyncQueue<T> implements AsyncIterable<T> {
  readonly #items: T[] = [];
  #weight = 0;
  #wake: (() => void) | undefined;
  #ended = false;
  #failure: { readonly error: unknown } | undefined;

  constructor(
    /** Sum of weights above which a push is refused. */
    private readonly maxWeight: number,
    private readonly weigh: (item: T) => number = () => 1,
  ) {}

  /** False when the queue is over its bound or has ended: the item was not taken. */
  push(item: T): boolean {
    if (this.#ended || this.#weight > this.maxWeight) return false;
    this.#items.push(item);
    this.#weight += this.weigh(item);
    this.#wake?.();
    return true;
  }

  /** The consumer gets what is queued, then the end. Later calls do nothing. */
  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  /** The consumer gets what is queued, then the error. */
  fail(error: unknown): void {
    if (this.#ended) return;
    this.#failure = { error };
    this.end();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    try {
      for (;;) {
        const batch = this.#items.splice(0);
        this.#weight = 0;
        yield* batch;
        if (this.#items.length > 0) continue;
        if (this.#ended) break;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        this.#wake = undefined;
      }
      if (this.#failure) throw this.#failure.error;
    } finally {
      this.#ended = true;
      this.#items.length = 0;
    }
  }
}
