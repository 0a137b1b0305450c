/** The few buffers that all readers of logs share: many idle readers hold no memory. */
import { LINE_BUFFER_BYTES } from '../lines.js';

/**
 * Reads of logs at one time, 256 KiB each. More than the threads that libuv reads files with (4)
 * gain nothing; who comes later waits its turn, in order.
 */
const MAX_BUFFERS = 8;

let made = 0;
const idle: Buffer[] = [];
const waiting: ((buffer: Buffer) => void)[] = [];

/** Runs `use` with a buffer that is its own until it settles. It must not wait for a consumer. */
export async function withLineBuffer<T>(use: (buffer: Buffer) => Promise<T>): Promise<T> {
  const buffer = await take();
  try {
    return await use(buffer);
  } finally {
    const next = waiting.shift();
    if (next) next(buffer);
    else idle.push(buffer);
  }
}

async function take(): Promise<Buffer> {
  const buffer = idle.pop();
  if (buffer) return buffer;
  if (made < MAX_BUFFERS) {
    made++;
    return Buffer.allocUnsafeSlow(LINE_BUFFER_BYTES);
  }
  return new Promise((resolve) => waiting.push(resolve));
}
