/** The supervisor that a server works with: within its own process, or the detached one. */
import type { Logger } from 'pino';
import type { TerminalTuple } from '../core/names.js';
import type { StateDir } from '../store/stateDir.js';
import type { Supervisor } from '../supervisor/api.js';
import type { Isolation } from '../supervisor/isolation.js';
import { openCgroups } from './cgroups.js';
import type { Configuration } from './config.js';
import { howToEnd, openOutside } from './outsideSupervisor.js';
import { lockedSupervisor } from './ownSupervisor.js';
import { supervisorLimits } from './supervisorLimits.js';

/**
 * - `detached`: a process of its own, started where none answers and again when it is lost; the default
 * - `external`: a process that somebody else starts, and starts again, a service manager say
 * - `in-process`: no process of its own; its terminals end with this one
 */
export type SupervisorKind = 'detached' | 'external' | 'in-process';

export interface SupervisorOptions {
  readonly kind: SupervisorKind;
  readonly stateDir: StateDir;
  readonly isolation: Isolation;
  readonly config: Configuration;
  readonly version: string;
  readonly logger: Logger;
  /** The server's address for a terminal. */
  readonly locator: (tuple: TerminalTuple) => string;
  /** Arguments of `ctx` that make a supervisor with the isolation that this server chose. */
  readonly superviseArguments: readonly string[];
  /** Hears when a supervisor outside of this process was lost, and when there is one again. */
  readonly onChange: (connected: boolean) => void;
  /** Milliseconds for which an external one is waited for. Default: as for one that is started. */
  readonly patienceMs?: number;
  /** See `InProcessOptions`. */
  readonly hurry: AbortSignal;
}

/** Disposing ends one in this process with its terminals, and leaves any other. @throws Error that says what to do */
export async function openSupervisor(options: SupervisorOptions): Promise<Supervisor> {
  return options.kind === 'in-process' ? supervise(options) : connect(options);
}

async function supervise(options: SupervisorOptions): Promise<Supervisor> {
  const { stateDir, isolation, config, version, logger, locator, hurry } = options;
  return lockedSupervisor({
    stateDir: stateDir.path,
    stateDirId: stateDir.id,
    isolation,
    version,
    log: logger,
    hurry,
    cgroups: await openCgroups(config.cgroups, logger),
    logSync: config.log.sync,
    limits: supervisorLimits(config),
    locator,
  });
}

async function connect(options: SupervisorOptions): Promise<Supervisor> {
  const { isolation } = options;
  const outside = { ...options, mayStart: options.kind === 'detached' };
  const supervisor = await openOutside(outside);
  const info = await supervisor.info();
  if (info.isolation === isolation.mode) return supervisor;
  await supervisor[Symbol.asyncDispose]();
  throw new Error(
    `the running supervisor (pid ${info.pid}) runs terminals ${info.isolation}, but this server is configured for ${isolation.mode}; ${howToEnd(outside)}, or change run_as back`,
  );
}
