/** Reading complete lines of an events file, a buffer at a time, forwards or backwards. */
import type { FileHandle } from 'node:fs/promises';
import { MAX_LINE_BYTES, NEWLINE } from './eventCodec.js';

/**
 * Bytes of a buffer for lines. At least the longest line, so that a full buffer always shows a
 * whole one; 384 KiB hold four lines of a flood, so that little is read twice.
 */
export const LINE_BUFFER_BYTES = 3 * MAX_LINE_BYTES;

/**
 * Given a line without its newline and where it begins in the file; false: not taken, stop here.
 * The bytes are only valid during the call.
 */
export type TakeLine = (bytes: Buffer, start: number, end: number, offset: number) => boolean;

/** Reads once at `position` and gives what was read to `takeLinesOf`. */
export async function takeLines(
  handle: FileHandle,
  position: number,
  buffer: Buffer,
  take: TakeLine,
): Promise<number> {
  const { bytesRead } = await handle.read(buffer, 0, buffer.length, position);
  return takeLinesOf(buffer.subarray(0, bytesRead), position, take);
}

/**
 * Gives each complete line of what was read at `position` to `take`. What follows the last newline is
 * not there yet, or torn. Returns the bytes of the lines that were taken: 0 when `take` wanted none or
 * there is none.
 * @throws SyntaxError for a line of more than MAX_LINE_BYTES
 */
export function takeLinesOf(bytes: Buffer, position: number, take: TakeLine): number {
  let start = 0;
  for (;;) {
    const newline = bytes.indexOf(NEWLINE, start);
    const end = newline < 0 ? bytes.length : newline;
    requireLineLength(end - start, position + start);
    if (newline < 0 || !take(bytes, start, end, position + start)) return start;
    start = newline + 1;
  }
}

/**
 * As `takeLines`, from the line whose newline stands before `end` towards the beginning. Nothing
 * is taken where no newline stands before `end`.
 */
export async function takeLinesBack(
  handle: FileHandle,
  end: number,
  buffer: Buffer,
  take: TakeLine,
): Promise<number> {
  const length = Math.min(end, buffer.length);
  const base = end - length;
  const { bytesRead } = await handle.read(buffer, 0, length, base);
  if (bytesRead < length || length === 0 || buffer[length - 1] !== NEWLINE) return 0;
  let lineEnd = length - 1;
  for (;;) {
    // A byte offset of -1 would mean the end of the buffer.
    const newline = lineEnd === 0 ? -1 : buffer.lastIndexOf(NEWLINE, lineEnd - 1);
    const start = newline + 1;
    requireLineLength(lineEnd - start, base + start);
    if (newline < 0 && base > 0) return length - lineEnd - 1;
    if (!take(buffer, start, lineEnd, base + start)) return length - lineEnd - 1;
    if (newline < 0) return length;
    lineEnd = newline;
  }
}

function requireLineLength(length: number, offset: number): void {
  if (length < MAX_LINE_BYTES) return;
  throw new SyntaxError(`the line at byte ${offset} is longer than ${MAX_LINE_BYTES} bytes`);
}
