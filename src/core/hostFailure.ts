/** What the host lacks when a system call fails for no fault of the caller. */
import { errorCode } from './errors.js';

const lacks: Readonly<Record<string, string>> = {
  ENOSPC: 'there is no room left on the disk',
  EDQUOT: 'the disk quota is used up',
  EROFS: 'the file system is read-only',
  EIO: 'the disk fails',
  EMFILE: 'the process has no file descriptor left',
  ENFILE: 'the host has no file descriptor left',
  EAGAIN: 'the host has no room for another process',
  ENOMEM: 'the host has no memory left',
};

/** In words that whoever asked may read: they name no file. Undefined for any other error. */
export function hostFailure(error: unknown): string | undefined {
  return lacks[errorCode(error) ?? ''];
}
