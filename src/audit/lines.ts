/** Lines of a file with where they begin, in constant memory. */
import type { FileHandle } from 'node:fs/promises';
import { MAX_LINE_BYTES } from './chain.js';

const NEWLINE = 0x0a;

/** Bytes read at once; the buffer grows only for a line that is longer. */
const CHUNK_BYTES = 256 * 1024;

export interface Line {
  /** With the newline, unless the file ends without one. Valid until the next line is asked for. */
  readonly bytes: Buffer;
  readonly offset: number;
  /** False for what follows the last newline. */
  readonly complete: boolean;
}

export type ReadAt = (
  buffer: Buffer,
  offset: number,
  length: number,
  position: number,
) => Promise<{ bytesRead: number }>;

export function readerOf(handle: FileHandle): ReadAt {
  return (buffer, offset, length, position) => handle.read(buffer, offset, length, position);
}

/**
 * From byte `from`, which must begin a line, to the end of the file.
 * @throws SyntaxError for a line that no writer of ours makes
 */
export async function* readLines(readAt: ReadAt, from = 0): AsyncGenerator<Line> {
  let buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  let position = from;
  let held = 0;
  for (;;) {
    if (held === buffer.length) {
      if (held >= MAX_LINE_BYTES) throw new SyntaxError(`the line at byte ${position} is too long`);
      const larger = Buffer.allocUnsafe(buffer.length * 2);
      buffer.copy(larger, 0, 0, held);
      buffer = larger;
    }
    const { bytesRead } = await readAt(buffer, held, buffer.length - held, position + held);
    if (bytesRead === 0) break;
    const end = held + bytesRead;
    let start = 0;
    // What was held before this read has no newline.
    let newline = buffer.subarray(0, end).indexOf(NEWLINE, held);
    while (newline >= 0) {
      const bytes = buffer.subarray(start, newline + 1);
      yield { bytes, offset: position + start, complete: true };
      start = newline + 1;
      newline = buffer.subarray(0, end).indexOf(NEWLINE, start);
    }
    buffer.copyWithin(0, start, end);
    held = end - start;
    position += start;
  }
  if (held > 0) yield { bytes: buffer.subarray(0, held), offset: position, complete: false };
}
