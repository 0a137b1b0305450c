/** An exclusive lock for the life of this process, on a file. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type FileHandle, readdir, stat } from 'node:fs/promises';
import { errorCode } from '../core/errors.js';
import { openOrCreate, openRegular } from './files.js';

/** Exit status of flock(1) when somebody else holds the lock. */
const HELD = 75;

/** Seconds for which the lock is waited for: who only looks at it has it shared for some milliseconds. */
const PATIENCE_S = 1;

/** Who has the lock. */
export interface LockHolder {
  /** Absent where the file names no process, or one that has not got it open: a pid may be used again. */
  readonly pid?: number;
  /** In words, with the path. */
  readonly message: string;
}

/**
 * Takes the lock or fails within a moment. The kernel gives it back when this process ends, kill -9
 * included: flock(2) binds it to the open file description, which flock(1) shares for a moment by
 * an inherited descriptor and which our own descriptor keeps.
 *
 * Hazard: a process that inherits the descriptor keeps the lock too. Node.js opens it O_CLOEXEC, so
 * no program that is started later has it.
 *
 * @throws Error with code ELOCKED, which names the holder, when it is taken
 */
export async function acquireLock(path: string): Promise<AsyncDisposable> {
  const handle = await openForHolding(path);
  try {
    if (!(await lock(path, handle, ['--timeout', String(PATIENCE_S)]))) {
      const { message } = await holderOf(path, handle);
      throw Object.assign(new Error(message), { code: 'ELOCKED' });
    }
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
 * Who holds the lock; undefined when nobody does. Writes nothing and needs no right to: for who only
 * looks, on a file system that is read-only too. A look takes the lock shared, so that looks do not
 * see each other, and `acquireLock` outwaits them.
 */
export async function lockHolder(path: string): Promise<LockHolder | undefined> {
  let handle: FileHandle;
  try {
    handle = await openRegular(path, 'read');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
  try {
    const isFree = await lock(path, handle, ['--shared', '--nonblock']);
    return isFree ? undefined : await holderOf(path, handle);
  } finally {
    await handle.close();
  }
}

async function holderOf(path: string, handle: FileHandle): Promise<LockHolder> {
  const { bytesRead, buffer } = await handle.read(Buffer.alloc(32), 0, 32, 0);
  const named = /^[1-9][0-9]*(?=\n?$)/.exec(buffer.toString('latin1', 0, bytesRead))?.[0];
  if (named === undefined || !(await mayHaveOpen(named, handle))) {
    return { message: `${path} is locked by another process` };
  }
  return { pid: Number(named), message: `${path} is locked by process ${named}` };
}

/** False when it surely has not: who was killed has left its pid, until the next one has written its own. */
async function mayHaveOpen(pid: string, handle: FileHandle): Promise<boolean> {
  const { dev, ino } = await handle.stat();
  const dir = `/proc/${pid}/fd`;
  try {
    for (const fd of await readdir(dir)) {
      const found = await stat(`${dir}/${fd}`).catch(() => undefined);
      if (found?.ino === ino && found.dev === dev) return true;
    }
    return false;
  } catch (error) {
    // Of another user's process nothing can be said.
    return errorCode(error) !== 'ENOENT';
  }
}

/** Whether it has been taken, through the open file description of the handle. */
async function lock(path: string, handle: FileHandle, how: readonly string[]): Promise<boolean> {
  const child = spawn('flock', [...how, '--conflict-exit-code', String(HELD), '3'], {
    stdio: ['ignore', 'ignore', 'pipe', handle.fd],
  });
  let failure = '';
  // Absent where no pipe could be made; the error says why.
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    failure += text;
  });
  try {
    const [status] = await once(child, 'close');
    if (status === 0) return true;
    if (status === HELD) return false;
  } catch (cause) {
    if (errorCode(cause) !== 'ENOENT') throw cause;
    throw new Error('flock(1) is not installed; it comes with util-linux', { cause });
  }
  throw new Error(`flock failed on ${path}: ${failure.trim()}`);
}
