/** A terminal's log looked through from a place on, as it grows: for the server's own eyes. */
import type { LogReader } from '../store/reader/logReader.js';
import type { Passage } from '../store/reader/passage.js';
import type { Feed } from './hub.js';

export interface Onlooker<T> {
  /** Answers what it was looking for, once it has it. The passage is valid only during the call. */
  look(passage: Passage): T | undefined;
  /** Whenever the end of the log is reached, and all of it was looked at. */
  atEnd(): void;
}

/**
 * Has all events after `after` looked at, until there is an answer. Undefined: the feed has ended, or
 * `stop` has aborted.
 */
export async function lookOn<T>(
  feed: Feed,
  after: number,
  openLog: () => Promise<LogReader>,
  stop: AbortSignal,
  onlooker: Onlooker<T>,
): Promise<T | undefined> {
  await using log = await openLog();
  let cursor = after;
  let answer: T | undefined;
  while (answer === undefined && !stop.aborted) {
    const last = feed.lastSeq;
    if (cursor < last) {
      const before = cursor;
      await log.scan(cursor + 1, last, (passage) => {
        cursor = passage.lastSeq;
        answer = onlooker.look(passage);
        return answer === undefined && !stop.aborted;
      });
      // What was announced has been written: a gap would pass for silence.
      if (cursor === before) throw new Error(`the log has no event after seq ${before}`);
      continue;
    }
    if (feed.end !== undefined) return undefined;
    const moved = movement(feed, stop);
    onlooker.atEnd();
    await moved;
  }
  return answer;
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
