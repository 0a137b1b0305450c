/** A ticker that is moved by hand. */
import type { Ticker } from '../../src/supervisor/lifeSweep.js';

export class ManualTicker implements Ticker {
  /** Of every task that was ever begun. */
  readonly periods: number[] = [];
  #now = 0;
  readonly #tasks = new Set<() => void>();

  get tasks(): number {
    return this.#tasks.size;
  }

  now(): number {
    return this.#now;
  }

  every(ms: number, task: () => void): () => void {
    this.periods.push(ms);
    this.#tasks.add(task);
    return () => this.#tasks.delete(task);
  }

  /** Time goes on by `ms`, and everybody looks. */
  advance(ms: number): void {
    this.#now += ms;
    for (const task of this.#tasks) task();
  }
}
