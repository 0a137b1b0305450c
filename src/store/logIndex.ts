/**
 * events.idx: where some lines of a log begin, so that a seq is found without scanning. A hint
 * that can be made anew: whoever uses it checks the log at the place it names.
 *
 * Rows of 16 bytes, little-endian: first the mark of the format; then the durable point (next seq,
 * offset) up to which the log was seen sound and synced; then for a line about every 256 KiB its
 * seq and offset, ascending.
 */
import { type FileHandle, unlink } from 'node:fs/promises';
import { errorCode } from '../core/errors.js';
import { createPrivate, openRegular } from './files.js';

/** Bytes of log between two rows at least: what a reader passes over at most, batches apart. */
const SPACING_BYTES = 256 * 1024;

const ROW_BYTES = 16;
/** The rows before the lines' rows. */
const HEADER_ROWS = 2;
const FORMAT_MARK = Buffer.from('events.idx v1\n\0\0', 'latin1');

/** A place in the log: the line that begins at `offset` has this seq. */
export interface LogPlace {
  readonly seq: number;
  readonly offset: number;
}

/** The writer's side. Rows wait in memory until `flush`; a log below the spacing gets no file. */
export class LogIndex {
  readonly #path: string;
  #handle: FileHandle | undefined;
  #rows: number;
  #pending: LogPlace[] = [];
  #lastOffset: number;

  private constructor(
    path: string,
    handle: FileHandle | undefined,
    rows: number,
    lastOffset: number,
  ) {
    this.#path = path;
    this.#handle = handle;
    this.#rows = rows;
    this.#lastOffset = lastOffset;
  }

  /** Of a log that has no event and no index yet. */
  static empty(path: string): LogIndex {
    return new LogIndex(path, undefined, 0, 0);
  }

  /**
   * Opens the index of a log that is known to be sound up to byte `end`; rows behind it are
   * dropped. Where nothing is known the index is begun anew.
   */
  static async open(path: string, end: number | undefined): Promise<LogIndex> {
    const handle = end === undefined ? undefined : await openIndex(path, 'write');
    if (!handle || end === undefined) {
      await unlink(path).catch(ignoreMissing);
      return LogIndex.empty(path);
    }
    try {
      let rows = await countRows(handle);
      let lastOffset = 0;
      while (rows > 0) {
        const last = await readRow(handle, HEADER_ROWS + rows - 1);
        lastOffset = last && last.offset < end ? last.offset : 0;
        if (lastOffset > 0) break;
        rows--;
      }
      await handle.truncate((HEADER_ROWS + rows) * ROW_BYTES);
      return new LogIndex(path, handle, rows, lastOffset);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** A line begins here; kept when the last one kept is far enough away. */
  note(seq: number, offset: number): void {
    if (offset - this.#lastOffset < SPACING_BYTES) return;
    this.#lastOffset = offset;
    this.#pending.push({ seq, offset });
  }

  /** Writes what waits, and the durable point. Nothing to write: no file is touched. */
  async flush(durable: LogPlace): Promise<void> {
    if (this.#pending.length === 0) return;
    this.#handle ??= await createPrivate(this.#path);
    const rows = Buffer.concat(this.#pending.map(rowBytes));
    const written = this.#pending.length;
    await this.#handle.write(rows, 0, rows.length, (HEADER_ROWS + this.#rows) * ROW_BYTES);
    this.#rows += written;
    this.#pending = this.#pending.slice(written);
    await this.#handle.write(FORMAT_MARK, 0, ROW_BYTES, 0);
    await this.#handle.write(rowBytes(durable), 0, ROW_BYTES, ROW_BYTES);
  }

  async close(): Promise<void> {
    await this.#handle?.close();
  }
}

/** The place up to which the log was known to be sound, as far as the index says. */
export async function durablePlace(path: string): Promise<LogPlace | undefined> {
  await using handle = await openIndex(path, 'read');
  if (!handle) return undefined;
  return readRow(handle, 1);
}

/** The last place with a seq not above `seq`, as far as the index says: to be checked in the log. */
export async function placeBefore(path: string, seq: number): Promise<LogPlace | undefined> {
  await using handle = await openIndex(path, 'read');
  if (!handle) return undefined;
  let found: LogPlace | undefined;
  let low = 0;
  let high = await countRows(handle);
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const place = await readRow(handle, HEADER_ROWS + middle);
    if (place && place.seq <= seq) {
      found = place;
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return found;
}

/** Undefined when there is no index, or none of this format. */
async function openIndex(path: string, access: 'read' | 'write'): Promise<FileHandle | undefined> {
  let handle: FileHandle;
  try {
    handle = await openRegular(path, access);
  } catch (error) {
    ignoreMissing(error);
    return undefined;
  }
  let isIndex = false;
  try {
    const mark = Buffer.alloc(ROW_BYTES);
    await handle.read(mark, 0, ROW_BYTES, 0);
    isIndex = mark.equals(FORMAT_MARK);
  } finally {
    if (!isIndex) await handle.close();
  }
  return isIndex ? handle : undefined;
}

async function countRows(handle: FileHandle): Promise<number> {
  const { size } = await handle.stat();
  return Math.max(0, Math.floor(size / ROW_BYTES) - HEADER_ROWS);
}

/** Undefined for what cannot be a place: no line of a row begins at 0. */
async function readRow(handle: FileHandle, row: number): Promise<LogPlace | undefined> {
  const bytes = Buffer.alloc(ROW_BYTES);
  await handle.read(bytes, 0, ROW_BYTES, row * ROW_BYTES);
  const seq = Number(bytes.readBigUInt64LE(0));
  const offset = Number(bytes.readBigUInt64LE(8));
  const sound = Number.isSafeInteger(seq) && Number.isSafeInteger(offset) && seq > 0 && offset > 0;
  return sound ? { seq, offset } : undefined;
}

function rowBytes({ seq, offset }: LogPlace): Buffer {
  const bytes = Buffer.alloc(ROW_BYTES);
  bytes.writeBigUInt64LE(BigInt(seq), 0);
  bytes.writeBigUInt64LE(BigInt(offset), 8);
  return bytes;
}

function ignoreMissing(error: unknown): void {
  if (errorCode(error) !== 'ENOENT') throw error;
}
