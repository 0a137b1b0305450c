/** A terminal's events from a place on, read from the log as it grows: for the server's own eyes. */
import type { TerminalEvent } from '../core/event.js';
import type { LogReader } from '../store/reader/logReader.js';
import type { Feed } from './hub.js';

/**
 * Batches of events after `after`, and an empty one whenever the end of the log is reached. Ends when
 * the feed does, and when `stop` aborts.
 */
export async function* eventsAfter(
  feed: Feed,
  after: number,
  openLog: () => Promise<LogReader>,
  stop: AbortSignal,
): AsyncGenerator<readonly TerminalEvent[], void, undefined> {
  await using log = await openLog();
  let cursor = after;
  while (!stop.aborted) {
    const last = feed.lastSeq;
    if (cursor < last) {
      const before = cursor;
      for await (const events of log.read(cursor + 1, last, { ahead: true })) {
        cursor = events.at(-1)?.seq ?? cursor;
        yield events;
        if (stop.aborted) return;
      }
      // What was announced has been written: a gap would pass for silence.
      if (cursor === before) throw new Error(`the log has no event after seq ${before}`);
      continue;
    }
    if (feed.end !== undefined) return;
    const moved = movement(feed, stop);
    yield [];
    await moved;
  }
}

function movement(feed: Feed, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      feed.moved.delete(done);
      stop.removeEventListener('abort', done);
      resolve();
    };
    feed.moved.add(done);
    stop.addEventListener('abort', done);
  });
}
