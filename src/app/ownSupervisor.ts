/** A supervisor for a program that drives terminals by itself, without a server: in its own process. */
import { join } from 'node:path';
import { acquireLock } from '../store/lock.js';
import { openStateDir } from '../store/stateDir.js';
import type { Supervisor } from '../supervisor/api.js';
import type { Log } from '../supervisor/context.js';
import { SUPERVISOR_LOCK } from '../supervisor/detached.js';
import { createInProcessSupervisor, type InProcessOptions } from '../supervisor/inProcess.js';
import { ownerOf } from './isolationChoice.js';

export interface OwnSupervisorOptions {
  /** Made where it is missing. One supervisor at a time works in it. */
  readonly stateDir: string;
  /** Absent: nothing is logged. */
  readonly log?: Log;
}

const silent: Log = { info() {}, warn() {}, error() {} };

/**
 * Its terminals run as the user of this process, who is their one owner (the uid in decimal), and end
 * with it. Dispose it last: that ends them in order. Who holds it may do anything with them: there is
 * no token, no policy and no audit.
 * @throws Error that names the holder when another process supervises the directory
 */
export async function openOwnSupervisor(options: OwnSupervisorOptions): Promise<Supervisor> {
  const { log = silent } = options;
  const stateDir = await openStateDir(options.stateDir);
  return lockedSupervisor({
    stateDir: stateDir.path,
    stateDirId: stateDir.id,
    isolation: { mode: 'shared-uid', owners: ownerOf(process.getuid?.() ?? 0) },
    version: '',
    log,
    locator: () => `unix:${stateDir.path}`,
  });
}

/**
 * One in this process that has its directory's lock from before it looks at it until it has ended.
 * @throws Error that names the holder when another process supervises the directory
 */
export async function lockedSupervisor(options: InProcessOptions): Promise<Supervisor> {
  const lock = await acquireLock(join(options.stateDir, SUPERVISOR_LOCK));
  try {
    const supervisor = await createInProcessSupervisor(options);
    const end = supervisor[Symbol.asyncDispose].bind(supervisor);
    supervisor[Symbol.asyncDispose] = async () => {
      await end();
      await lock[Symbol.asyncDispose]();
    };
    return supervisor;
  } catch (error) {
    await lock[Symbol.asyncDispose]();
    throw error;
  }
}
