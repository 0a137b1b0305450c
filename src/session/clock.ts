/** Time as sessions see it, so that tests can move it. */

export interface Clock {
  /** Milliseconds, monotonic, from any origin. */
  now(): number;
  /** Runs `task` once after `ms` milliseconds unless the returned function is called before. */
  after(ms: number, task: () => void): () => void;
}

export const monotonicClock: Clock = {
  now: () => performance.now(),
  after(ms, task) {
    const timer = setTimeout(task, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
