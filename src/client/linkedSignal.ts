/** One signal for several. */

/** Aborted by the first of them, with its reason. Disposal leaves nothing behind at those that live on. */
export class LinkedSignal implements Disposable {
  readonly signal: AbortSignal;
  readonly #controller = new AbortController();
  readonly #unlink: (() => void)[] = [];

  constructor(sources: readonly (AbortSignal | undefined)[]) {
    this.signal = this.#controller.signal;
    for (const source of sources) {
      if (source === undefined) continue;
      const abort = () => this.#controller.abort(source.reason);
      if (source.aborted) abort();
      source.addEventListener('abort', abort, { once: true });
      this.#unlink.push(() => source.removeEventListener('abort', abort));
    }
  }

  [Symbol.dispose](): void {
    for (const unlink of this.#unlink.splice(0)) unlink();
  }
}
