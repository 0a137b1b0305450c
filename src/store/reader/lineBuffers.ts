/** The few buffers that all readers of logs share: many idle readers hold no memory. */
import { LINE_BUFFER_BYTES } from '../lines.js';

/**
 * Bytes of a buffer, which who reads on and on fills at once: six lines of a flood, so that little is
 * read twice. At least LINE_BUFFER_BYTES.
 */
export const BLOCK_BYTES = 520 * 1024;

/**
 * Reads of logs at one time, a block each. More than the threads that libuv reads files with (4), and
 * as many blocks that are looked at meanwhile, gain nothing; who comes later waits its turn, in order.
 */
const MAX_BUFFERS = 8;

let made = 0;
const idle: Buffer[] = [];
const waiting: ((buffer: Buffer) => void)[] = [];

/**
 * A buffer of BLOCK_BYTES, at once where there is one; to be given back without waiting for a consumer
 * or another buffer.
 */
export function takeBlockBuffer(): Buffer | Promise<Buffer> {
  const buffer = idle.pop();
  if (buffer) return buffer;
  if (made < MAX_BUFFERS) {
    made++;
    return Buffer.allocUnsafeSlow(BLOCK_BYTES);
  }
  return new Promise((resolve) => waiting.push(resolve));
}

export function giveBack(buffer: Buffer): void {
  const next = waiting.shift();
  if (next) next(buffer);
  else idle.push(buffer);
}

/** Runs `use` with LINE_BUFFER_BYTES that are its own until it settles. It must not wait for a consumer. */
export async function withLineBuffer<T>(use: (buffer: Buffer) => Promise<T>): Promise<T> {
  const buffer = await takeBlockBuffer();
  try {
    return await use(buffer.subarray(0, LINE_BUFFER_BYTES));
  } finally {
    giveBack(buffer);
  }
}
