/** One file of a log, opened for reading: the part that holds a given seq. */
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode, GranttyError } from '../../core/errors.js';
import { decodeLine, NEWLINE } from '../eventCodec.js';
import { openRegular } from '../files.js';
import { takeLines } from '../lines.js';
import { type LogPlace, placeBefore } from '../logIndex.js';
import { sealedParts } from '../logParts.js';
import { leadingSeq } from '../outputLine.js';
import { EVENTS_FILE, INDEX_FILE, sealedEventsFile, sealedIndexFile } from '../paths.js';
import { withLineBuffer } from './lineBuffers.js';

/** Bytes that show the beginning of a line as we write it, its seq of up to 16 digits included. */
const LINE_HEAD_BYTES = 32;

export class LogPart implements AsyncDisposable {
  readonly handle: FileHandle;
  /** Names the part: no two parts of a log share it. Undefined: there is no event as yet. */
  readonly firstSeq: number | undefined;
  readonly #indexPath: string;

  private constructor(handle: FileHandle, firstSeq: number | undefined, indexPath: string) {
    this.handle = handle;
    this.firstSeq = firstSeq;
    this.#indexPath = indexPath;
  }

  /**
   * The part with `seq` or, when that is not there yet, the last one.
   * @throws SEQ_TRIMMED when it is no longer there; TERMINAL_NOT_FOUND when the terminal was deleted;
   * ENOENT when it has no log
   */
  static async openFor(dir: string, seq: number): Promise<LogPart> {
    const current = await LogPart.#openCurrent(dir);
    const currentFirst = current?.firstSeq;
    if (current && currentFirst !== undefined && currentFirst <= seq) return current;
    let sealed: readonly number[];
    try {
      sealed = await sealedParts(dir).catch(whenGone);
    } catch (error) {
      await current?.close();
      throw error;
    }
    const wanted = sealed.findLast((firstSeq) => firstSeq <= seq);
    const oldest = sealed[0] ?? currentFirst;
    if (current && oldest === undefined) return current;
    await current?.close();
    if (wanted === undefined) throw oldest === undefined ? noLog(dir) : trimmed(seq, oldest);
    try {
      const handle = await openRegular(join(dir, sealedEventsFile(wanted)), 'read');
      return new LogPart(handle, wanted, join(dir, sealedIndexFile(wanted)));
    } catch (error) {
      // Trimmed since it was listed: the next listing has one part less.
      if (errorCode(error) === 'ENOENT') return LogPart.openFor(dir, seq);
      throw error;
    }
  }

  /** Seq of the oldest event that is kept; 1 when there is none yet. */
  static async oldestSeq(dir: string): Promise<number> {
    const [oldest] = await sealedParts(dir).catch(whenGone);
    if (oldest !== undefined) return oldest;
    await using current = await LogPart.#openCurrent(dir);
    return current?.firstSeq ?? 1;
  }

  /** Undefined between the sealing of one part and the beginning of the next. */
  static async #openCurrent(dir: string): Promise<LogPart | undefined> {
    let handle: FileHandle;
    try {
      handle = await openRegular(join(dir, EVENTS_FILE), 'read');
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return undefined;
      throw error;
    }
    try {
      return new LogPart(handle, await seqOfFirstLine(handle), join(dir, INDEX_FILE));
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /**
   * Where the line of `seq` begins; when it is not there yet, where the log ends now, with the seq
   * that comes there.
   */
  async locate(seq: number, signal?: AbortSignal): Promise<LogPlace> {
    const beginning = { seq: this.firstSeq ?? 1, offset: 0 };
    if (seq <= beginning.seq) return beginning;
    let place = (await this.#indexed(seq)) ?? beginning;
    while (place.seq < seq) {
      signal?.throwIfAborted();
      const { offset } = place;
      let next = place.seq;
      const bytes = await withLineBuffer((buffer) =>
        takeLines(this.handle, offset, buffer, (line, start, end, at) => {
          if (next === seq) return false;
          requireSeq(seqOf(line, start, end), next, at);
          next++;
          return true;
        }),
      );
      if (bytes === 0) return place;
      place = { seq: next, offset: offset + bytes };
    }
    return place;
  }

  /** What the index says, when the log bears it out. */
  async #indexed(seq: number): Promise<LogPlace | undefined> {
    const place = await placeBefore(this.#indexPath, seq).catch(() => undefined);
    if (!place) return undefined;
    const head = Buffer.alloc(1 + LINE_HEAD_BYTES);
    const { bytesRead } = await this.handle.read(head, 0, head.length, place.offset - 1);
    const sound = head[0] === NEWLINE && leadingSeq(head, 1, bytesRead) === place.seq;
    return sound ? place : undefined;
  }

  async close(): Promise<void> {
    await this.handle.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

async function seqOfFirstLine(handle: FileHandle): Promise<number | undefined> {
  const head = Buffer.alloc(LINE_HEAD_BYTES);
  const { bytesRead } = await handle.read(head, 0, head.length, 0);
  const leading = leadingSeq(head, 0, bytesRead);
  if (leading !== undefined) return leading;
  let seq: number | undefined;
  await withLineBuffer((buffer) =>
    takeLines(handle, 0, buffer, (line, start, end) => {
      seq = seqOf(line, start, end);
      return false;
    }),
  );
  return seq;
}

function seqOf(bytes: Buffer, start: number, end: number): number {
  return leadingSeq(bytes, start, end) ?? decodeLine(bytes, start, end).seq;
}

/** @throws SyntaxError when the line at byte `offset` is not the one that comes there */
export function requireSeq(found: number, expected: number, offset: number): void {
  if (found === expected) return;
  throw new SyntaxError(`event ${found} stands at byte ${offset} in the place of ${expected}`);
}

function trimmed(seq: number, oldest: number): GranttyError {
  return new GranttyError(
    'SEQ_TRIMMED',
    `event ${seq} is no longer kept; the oldest is ${oldest}`,
    {
      metadata: { first_seq: String(oldest) },
    },
  );
}

/**
 * A deleted terminal's directory leaves its place at once, in the middle of whatever is read from it.
 * @throws TERMINAL_NOT_FOUND for a directory that is not there, else `error`
 */
export function whenGone(error: unknown): never {
  if (errorCode(error) !== 'ENOENT') throw error;
  throw deleted();
}

export function deleted(): GranttyError {
  return new GranttyError('TERMINAL_NOT_FOUND', 'there is no such terminal');
}

function noLog(dir: string): Error {
  return Object.assign(new Error(`${dir} holds no ${EVENTS_FILE}`), { code: 'ENOENT' });
}
