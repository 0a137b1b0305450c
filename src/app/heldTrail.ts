/** The audit trail while this process is the one that writes to it. */
import { join } from 'node:path';
import type { Logger } from 'pino';
import { openFileTrail } from '../audit/fileTrail.js';
import type { AuditTrail } from '../audit/trail.js';
import type { PolicySet } from '../auth/cedarSet.js';
import { systemClock } from '../server/clock.js';
import { ensurePrivateDir, removeTemporary } from '../store/files.js';
import { acquireLock } from '../store/lock.js';
import type { StateDir } from '../store/stateDir.js';
import type { Isolation } from '../supervisor/isolation.js';
import type { Configuration } from './config.js';

export interface HeldTrailOptions {
  readonly config: Configuration['audit'];
  readonly stateDir: StateDir;
  readonly isolation: Isolation;
  readonly version: string;
  /** In force at the start. */
  readonly policy: PolicySet;
  readonly logger: Logger;
}

export interface HeldTrail extends AsyncDisposable {
  readonly trail: AuditTrail;
  /** Puts policies that came into force on record, as soon as there is room. */
  policyChanged(set: PolicySet): void;
}

/**
 * Opens the trail and puts start and policies on record. Disposal seals it.
 * @throws Error when it cannot be kept, or when another process writes to it
 */
export async function holdTrail(options: HeldTrailOptions): Promise<HeldTrail> {
  const { config, stateDir, isolation, version, policy, logger } = options;
  const dir = config.dir ?? join(stateDir.path, 'audit');
  await ensurePrivateDir(dir);
  const lock = await acquireLock(join(dir, 'lock'));
  try {
    await removeTemporary(dir);
    const trail = await openFileTrail({
      dir,
      clock: systemClock,
      logger,
      header: { version, state_dir: stateDir.id, isolation: isolation.mode },
      omit: config.omit,
    });
    // On a full disk too a server must come up, to stop and to revoke; the trail makes up for it.
    const policyChanged = (set: PolicySet) =>
      trail
        .change(policyRecord(set))
        .catch((error) => logger.error({ err: error }, 'policies in force not on record yet'));
    await policyChanged(policy);
    return {
      trail,
      policyChanged: (set) => void policyChanged(set),
      async [Symbol.asyncDispose]() {
        await trail[Symbol.asyncDispose]();
        await lock[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await lock[Symbol.asyncDispose]();
    throw error;
  }
}

function policyRecord({ hash, canonical }: PolicySet) {
  return { change: 'policy', timeMs: systemClock.now(), hash, text: canonical } as const;
}
