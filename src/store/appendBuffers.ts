/** The few buffers in which lines stand while they are appended: a flood asks for no new memory. */
import { MAX_LINE_BYTES } from './eventCodec.js';

/** Holds the longest line, and what a round trip prints many times over. */
const BUFFER_BYTES = 2 * MAX_LINE_BYTES;
/** Kept while nobody uses them. More logs may be written to at one time: then more are made. */
const MAX_IDLE = 4;

const idle: Buffer[] = [];

/** Runs `use` with a buffer that is its own until it settles. */
export async function withAppendBuffer<T>(use: (buffer: Buffer) => Promise<T>): Promise<T> {
  const buffer = idle.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES);
  try {
    return await use(buffer);
  } finally {
    if (idle.length < MAX_IDLE) idle.push(buffer);
  }
}
