/** One moment that many may wait for, each as long as it likes. */

/**
 * Who gives up leaves nothing behind. A promise that is raced against a signal would keep a
 * reaction of every race until it settles: for a terminal that runs for months, of every Wait.
 */
export class Latch {
  readonly #waiting = new Set<() => void>();
  #released = false;

  /** Ends every wait, those to come too. */
  release(): void {
    this.#released = true;
    for (const end of this.#waiting) end();
    this.#waiting.clear();
  }

  /** @throws the signal's reason when that fires first */
  async wait(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#released) return;
    await new Promise<void>((resolve, reject) => {
      const abort = () => {
        this.#waiting.delete(end);
        reject(signal.reason);
      };
      const end = () => {
        signal.removeEventListener('abort', abort);
        resolve();
      };
      this.#waiting.add(end);
      signal.addEventListener('abort', abort, { once: true });
    });
  }

  /** How many wait now. */
  get waiting(): number {
    return this.#waiting.size;
  }
}
