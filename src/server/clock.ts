/** Time as the server sees it, so that tests can move it. */

export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Runs `task` once after `ms` milliseconds unless the returned function is called before. */
  after(ms: number, task: () => void): () => void;
}

/** The longest delay that a Node.js timer takes, 24.8 days; a longer one would fire at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, task) {
    let timer: NodeJS.Timeout;
    const wait = (left: number): void => {
      const isLast = left <= MAX_DELAY_MS;
      const next = isLast ? task : () => wait(left - MAX_DELAY_MS);
      timer = setTimeout(next, isLast ? Math.max(left, 0) : MAX_DELAY_MS).unref();
    };
    wait(ms);
    return () => clearTimeout(timer);
  },
};
