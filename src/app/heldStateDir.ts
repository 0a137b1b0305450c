/** The state directory while this process is the one that serves from it. */
import { join } from 'node:path';
import { errorCode } from '../core/errors.js';
import { acquireLock, type LockHolder } from '../store/lock.js';
import { openStateDir, type StateDir } from '../store/stateDir.js';

/** One server for each directory. Whoever supervises it holds a lock of its own. */
export const SERVER_LOCK = 'server.lock';

export type HeldStateDir = StateDir & AsyncDisposable;

/**
 * Makes or checks the directory and locks it until disposal, at the latest until this process ends.
 * @throws Error that names the holder when another process has it
 */
export async function holdStateDir(path: string): Promise<HeldStateDir> {
  const stateDir = await openStateDir(path);
  const lock = await acquireLock(join(stateDir.path, SERVER_LOCK)).catch((error: Error) => {
    throw errorCode(error) === 'ELOCKED' ? servedElsewhere(error) : error;
  });
  return { ...stateDir, [Symbol.asyncDispose]: () => lock[Symbol.asyncDispose]() };
}

/** What a start says that finds another server there. */
export function servedElsewhere({ message }: Pick<LockHolder, 'message'>): Error {
  return new Error(
    `${message}: another server serves from this state directory; end that one first, or give another by --state-dir`,
  );
}
