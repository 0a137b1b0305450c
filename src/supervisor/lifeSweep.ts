/** One timer for all terminals: those that have lived or idled for longer than they may are stopped. */
import type { LifeLimits } from './instanceLife.js';

/** Time that never steps back, so that tests can move it. */
export interface Ticker {
  /** Milliseconds. */
  now(): number;
  /** Runs `task` every `ms` milliseconds until the returned function is called. */
  every(ms: number, task: () => void): () => void;
}

export const systemTicker: Ticker = {
  now: () => performance.now(),
  every(ms, task) {
    const timer = setInterval(task, ms).unref();
    return () => clearInterval(timer);
  },
};

/** Milliseconds between two looks: by so much a limit may be overstepped. */
const LOOK_MS = 1_000;

export interface Mortal {
  holdToLife(limits: LifeLimits, now: number): void;
}

/** Does nothing where nothing is limited. Returns what ends the sweep. */
export function sweepLives(
  ticker: Ticker,
  limits: LifeLimits,
  terminals: () => Iterable<Mortal>,
): () => void {
  if (limits.idleMs === undefined && limits.lifetimeMs === undefined) return () => {};
  return ticker.every(LOOK_MS, () => {
    const now = ticker.now();
    for (const terminal of terminals()) terminal.holdToLife(limits, now);
  });
}
