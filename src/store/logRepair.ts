/** Finding the sound beginning of an events file, and setting aside what follows it. */
import { type FileHandle, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errorCode } from '../core/errors.js';
import type { ExitEvent, TerminalEvent } from '../core/event.js';
import { decodeLine } from './eventCodec.js';
import type { UnknownEvent } from './eventJson.js';
import { createPrivate, syncDirectory } from './files.js';
import { LINE_BUFFER_BYTES, type TakeLine, takeLines, takeLinesBack } from './lines.js';
import type { LogPlace } from './logIndex.js';

/** What a log says up to some place. */
export interface LogState {
  readonly nextSeq: number;
  /** Time of the last event; 0 when there is none. */
  readonly lastTimeMicros: number;
  /** The exit that the log ends with; undefined when it ends with anything else. */
  readonly lastExit: ExitEvent | undefined;
}

/** The sound lines of one file. */
export interface SoundPrefix extends LogState {
  /** Bytes of the sound lines. */
  readonly end: number;
  /** Undefined when there is no sound line. */
  readonly firstSeq: number | undefined;
}

const NOTHING: LogState = { nextSeq: 1, lastTimeMicros: 0, lastExit: undefined };

/**
 * The longest run of sound lines with consecutive seqs from the beginning of a file. What lies
 * before `known`, which `verifiedPlace` has found true, is not read again.
 * @param before the state at the end of the sealed part before; without one the first line may
 * have any seq
 * @param note told of each line that is read
 */
export async function soundPrefix(
  handle: FileHandle,
  known: SoundPrefix | undefined,
  before: LogState | undefined,
  note: (seq: number, offset: number) => void,
): Promise<SoundPrefix> {
  const buffer = Buffer.allocUnsafe(LINE_BUFFER_BYTES);
  let found = known ?? { ...(before ?? NOTHING), end: 0, firstSeq: undefined };
  let expected = known || before ? found.nextSeq : undefined;
  const take: TakeLine = (bytes, start, end, offset) => {
    const event = soundEvent(bytes, start, end);
    if (event === undefined || event.seq !== (expected ?? event.seq)) return false;
    note(event.seq, offset);
    found = {
      ...stateAfter(event),
      end: offset + end - start + 1,
      firstSeq: found.firstSeq ?? event.seq,
    };
    expected = found.nextSeq;
    return true;
  };
  for (;;) {
    const from = found.end;
    await takeLines(handle, from, buffer, take).catch(tooLong);
    if (found.end === from) return found;
  }
}

/**
 * `place` as a prefix when the log bears it out: the line before it has the seq before, and the
 * file begins with a sound line. Else undefined: nothing is known.
 */
export async function verifiedPlace(
  handle: FileHandle,
  place: LogPlace | undefined,
): Promise<SoundPrefix | undefined> {
  if (!place) return undefined;
  const state = await stateBefore(handle, place.offset);
  if (state?.nextSeq !== place.seq) return undefined;
  let firstSeq: number | undefined;
  const buffer = Buffer.allocUnsafe(LINE_BUFFER_BYTES);
  await takeLines(handle, 0, buffer, (bytes, start, end) => {
    firstSeq = soundEvent(bytes, start, end)?.seq;
    return false;
  }).catch(tooLong);
  return firstSeq === undefined ? undefined : { ...state, end: place.offset, firstSeq };
}

/** The state at `end`, by the line before it; undefined when that is not sound. */
export async function stateBefore(handle: FileHandle, end: number): Promise<LogState | undefined> {
  let state: LogState | undefined;
  const buffer = Buffer.allocUnsafe(LINE_BUFFER_BYTES);
  await takeLinesBack(handle, end, buffer, (bytes, from, to) => {
    const event = soundEvent(bytes, from, to);
    state = event && stateAfter(event);
    return false;
  }).catch(tooLong);
  return state;
}

function stateAfter(event: TerminalEvent | UnknownEvent): LogState {
  return {
    nextSeq: event.seq + 1,
    lastTimeMicros: event.timeMicros,
    lastExit: event.type === 'process.exit' ? event : undefined,
  };
}

/** A line that is too long is unsound; it is no failure of the search. */
function tooLong(error: unknown): void {
  if (!(error instanceof SyntaxError)) throw error;
}

function soundEvent(bytes: Buffer, start: number, end: number) {
  try {
    return decodeLine(bytes, start, end);
  } catch {
    return undefined;
  }
}

/**
 * Moves the bytes from `end` on into `events.torn-<time>` beside the log, and is durable: a crash
 * on the way leaves them in one of the two places at least. Returns the new file's path.
 */
export async function setAside(handle: FileHandle, path: string, end: number): Promise<string> {
  const torn = await createTornFile(dirname(path));
  await using target = torn.handle;
  try {
    await copyFrom(handle, end, target);
    await target.sync();
    await syncDirectory(dirname(path));
  } catch (error) {
    await unlink(torn.path);
    throw error;
  }
  await handle.truncate(end);
  await handle.sync();
  return torn.path;
}

async function copyFrom(source: FileHandle, position: number, target: FileHandle): Promise<void> {
  const buffer = Buffer.allocUnsafe(LINE_BUFFER_BYTES);
  let at = position;
  for (;;) {
    const { bytesRead } = await source.read(buffer, 0, buffer.length, at);
    if (bytesRead === 0) return;
    await target.writeFile(buffer.subarray(0, bytesRead));
    at += bytesRead;
  }
}

async function createTornFile(dir: string) {
  const time = new Date().toISOString().replaceAll(/[-:]/g, '');
  for (let attempt = 0; ; attempt++) {
    const path = join(dir, `events.torn-${time}${attempt === 0 ? '' : `-${attempt}`}`);
    try {
      return { path, handle: await createPrivate(path) };
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error;
    }
  }
}
