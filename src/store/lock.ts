/** An exclusive lock for the life of this process, on a file. */
import { spawnSync } from 'node:child_process';
import type { FileHandle } from 'node:fs/promises';
import { errorCode } from '../core/errors.js';
import { openOrCreate, openRegular } from './files.js';

/** Exit status of flock(1) when somebody else holds the lock. */
const HELD = 75;

/**
 * Takes the lock or fails at once. The kernel gives it back when this process ends, kill -9
 * included: flock(2) binds it to the open file description, which flock(1) shares for a moment by
 * an inherited descriptor and which our own descriptor keeps.
 *
 * Hazard: a process that inherits the descriptor keeps the lock too. Node.js opens it O_CLOEXEC, so
 * no program that is started later has it. Blocks the event loop for the run of flock(1), some
 * milliseconds: for start-up only.
 *
 * @throws Error with code ELOCKED, which names the holder, when it is taken
 */
export async function acquireLock(path: string): Promise<AsyncDisposable> {
  const handle = await openForHolding(path);
  try {
    await lock(path, handle);
    // Over what an earlier holder left, so that on a full disk it takes no more room.
    const { bytesWritten } = await handle.write(`${process.pid}\n`, 0);
    await handle.truncate(bytesWritten);
  } catch (error) {
    await handle.close();
    throw error;
  }
  return {
    [Symbol.asyncDispose]: () => handle.close(),
  };
}

async function openForHolding(path: string): Promise<FileHandle> {
  try {
    return await openOrCreate(path);
  } catch (error) {
    if (errorCode(error) !== 'EROFS') throw error;
    throw new Error(
      `${path} is on a read-only file system: look at the disk and the kernel's log, mount it for writing and start again`,
      { cause: error },
    );
  }
}

/**
 * Who holds the lock, in words; undefined when nobody does. Writes nothing and needs no right to: for
 * who only looks, on a file system that is read-only too.
 */
export async function lockHolder(path: string): Promise<string | undefined> {
  let handle: FileHandle;
  try {
    handle = await openRegular(path, 'read');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
  try {
    await lock(path, handle);
    return undefined;
  } catch (error) {
    if (errorCode(error) !== 'ELOCKED' || !(error instanceof Error)) throw error;
    return error.message;
  } finally {
    await handle.close();
  }
}

async function lock(path: string, handle: FileHandle): Promise<void> {
  const { error, status, stderr } = spawnSync('flock', ['-n', '-E', String(HELD), '3'], {
    stdio: ['ignore', 'ignore', 'pipe', handle.fd],
    encoding: 'utf8',
  });
  if (status === 0) return;
  if (status === HELD) {
    const holder = (await handle.readFile('utf8')).trim();
    const who = /^[0-9]+$/.test(holder) ? `process ${holder}` : 'another process';
    throw Object.assign(new Error(`${path} is locked by ${who}`), { code: 'ELOCKED' });
  }
  if (errorCode(error) === 'ENOENT') {
    throw new Error('flock(1) is not installed; it comes with util-linux', { cause: error });
  }
  throw new Error(`flock failed on ${path}: ${stderr.trim()}`, { cause: error });
}
