/** A clock that tests move; timers fire while it moves. */
import type { Clock } from '../../src/server/clock.js';

export class ManualClock implements Clock {
  /** What timers go by. */
  #now = 1_700_000_000_000;
  /** How far it was set from that. */
  #set = 0;
  readonly #timers = new Set<{ readonly at: number; readonly task: () => void }>();

  /** Timers that were set so far. */
  timersSet = 0;

  /** Timers that are set now. */
  get timers(): number {
    return this.#timers.size;
  }

  now(): number {
    return this.#now + this.#set;
  }

  /** Somebody sets it: timers do not notice. */
  set(ms: number): void {
    this.#set += ms;
  }

  after(ms: number, task: () => void): () => void {
    const timer = { at: this.#now + ms, task };
    this.#timers.add(timer);
    this.timersSet += 1;
    return () => this.#timers.delete(timer);
  }

  /** Moves on, firing each timer at its time. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const due = [...this.#timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#timers.delete(due);
      this.#now = Math.max(this.#now, due.at);
      due.task();
    }
    this.#now = end;
  }
}
