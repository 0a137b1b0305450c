/** Time as the server sees it, so that tests can move it. */

export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Runs `task` once after `ms` milliseconds unless the returned function is called before. */
  after(ms: number, task: () => void): () => void;
}

/** The longest delay that a Node.js timer takes; a longer one would fire at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, task) {
    const timer = setTimeout(task, Math.min(Math.max(ms, 0), MAX_DELAY_MS));
    timer.unref();
    return () => clearTimeout(timer);
  },
};
