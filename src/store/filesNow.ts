/** Synchronous reading of files of ours, for what happens before anybody is served. */
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import { requireOrdinary } from './files.js';

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

/** Opens as `openRegular` does, and closes when `use` returns. */
export function withRegularNow<T>(path: string, use: (fd: number, found: Stats) => T): T {
  const fd = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const found = fstatSync(fd);
    requireOrdinary(path, found);
    return use(fd, found);
  } finally {
    closeSync(fd);
  }
}

/** As `readRegular`. */
export function readRegularNow(path: string, maxBytes: number): Buffer {
  return withRegularNow(path, (fd, { size }) => {
    if (size > maxBytes) throw new Error(`${path} holds ${size} bytes, more than ${maxBytes}`);
    return readBytesNow(fd, 0, size);
  });
}

/** At most `length` bytes from `position` on; fewer where the file ends. */
export function readBytesNow(fd: number, position: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  let done = 0;
  while (done < length) {
    const read = readSync(fd, bytes, done, length - done, position + done);
    if (read === 0) break;
    done += read;
  }
  return bytes.subarray(0, done);
}
