/** One timer for all logs: of each, the sealed parts that are too old are removed. */
import type { Log } from './context.js';
import type { Ticker } from './lifeSweep.js';

/** Milliseconds between two looks: by so much a part may outlive its time. */
const LOOK_MS = 600_000;

export interface Trimmed {
  readonly record: { readonly owner: string; readonly id: string };
  /** Removes parts that were complete before that time, milliseconds since the Unix epoch. */
  trimLog(before: number): Promise<void>;
}

export interface LogSweepOptions {
  readonly ticker: Ticker;
  /** Milliseconds since the Unix epoch. */
  readonly now: () => number;
  readonly log: Log;
  /** Milliseconds; absent: nothing is removed by its age. */
  readonly retainMs: number | undefined;
  readonly terminals: () => Iterable<Trimmed>;
}

/** Returns what ends the sweep. Logs are looked at one after the other, and by one look at a time. */
export function sweepLogs(options: LogSweepOptions): () => void {
  const { ticker, now, log, retainMs, terminals } = options;
  if (retainMs === undefined) return () => {};
  const over = new AbortController();
  const look = async () => {
    for (const terminal of [...terminals()]) {
      if (over.signal.aborted) return;
      const { owner, id } = terminal.record;
      await terminal.trimLog(now() - retainMs).catch((error: unknown) => {
        log.warn({ owner, id, err: error }, 'a log could not be trimmed');
      });
    }
  };
  let isLooking = false;
  const stop = ticker.every(LOOK_MS, () => {
    if (isLooking) return;
    isLooking = true;
    void look().finally(() => {
      isLooking = false;
    });
  });
  return () => {
    over.abort();
    stop();
  };
}
