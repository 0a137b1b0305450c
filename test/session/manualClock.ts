/** A clock that tests move; timers fire while it moves. */
import type { Clock } from '../../src/session/clock.js';

export class ManualClock implements Clock {
  #now = 1_000_000;
  readonly #timers = new Set<{ readonly at: number; readonly task: () => void }>();

  /** Timers that are set now. */
  get timers(): number {
    return this.#timers.size;
  }

  now(): number {
    return this.#now;
  }

  after(ms: number, task: () => void): () => void {
    const timer = { at: this.#now + ms, task };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Moves on, firing each timer at its time and letting what it began settle. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      const due = [...this.#timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#timers.delete(due);
      this.#now = Math.max(this.#now, due.at);
      due.task();
      await settled();
    }
    this.#now = end;
    await settled();
  }
}

/** Everything that waits for promises only has gone on. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
