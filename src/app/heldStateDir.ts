/** The state directory while this process is the one that serves from it. */
import { join } from 'node:path';
import { acquireLock } from '../store/lock.js';
import { openStateDir, type StateDir } from '../store/stateDir.js';

/** One server and one supervisor for each directory: with the in-process supervisor, both are here. */
const LOCK_FILES = ['server.lock', 'supervisor.lock'];

export type HeldStateDir = StateDir & AsyncDisposable;

/**
 * Makes or checks the directory and locks it until disposal, at the latest until this process ends.
 * @throws Error that names the holder when another process has it
 */
export async function holdStateDir(path: string): Promise<HeldStateDir> {
  const stateDir = await openStateDir(path);
  const locks: AsyncDisposable[] = [];
  const release = async () => {
    for (const lock of locks.splice(0).reverse()) await lock[Symbol.asyncDispose]();
  };
  try {
    for (const file of LOCK_FILES) locks.push(await acquireLock(join(stateDir.path, file)));
  } catch (error) {
    await release();
    throw error;
  }
  return { ...stateDir, [Symbol.asyncDispose]: release };
}
