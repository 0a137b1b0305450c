/** A file while it is written, made without a thread. */
import { closeSync, fdatasync, ftruncate } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { promisify } from 'node:util';
import { createNow } from './files.js';

/** Its owner closes it, once. */
export type WrittenFile = Pick<FileHandle, 'fd' | 'truncate' | 'datasync' | 'close'>;

const truncated = promisify(ftruncate);
const contentToDisk = promisify(fdatasync);

/** As `createPrivate`. */
export function createWritten(path: string): WrittenFile {
  const fd = createNow(path);
  return {
    fd,
    truncate: (length) => truncated(fd, length),
    datasync: () => contentToDisk(fd),
    close: async () => closeSync(fd),
  };
}
