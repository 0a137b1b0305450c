/** `ctx supervise`: the supervisor of a state directory in a process of its own. */
import { resolve } from 'node:path';
import { closeInherited } from '../pty/inheritedDescriptors.js';
import { openStateDir } from '../store/stateDir.js';
import {
  endDetachedWhenIdle,
  stopDetached,
  superviseDetached,
  supervisorSocket,
} from '../supervisor/detached.js';
import { endingSignals } from '../supervisor/endingSignals.js';
import { createInProcessSupervisor } from '../supervisor/inProcess.js';
import { openCgroups } from './cgroups.js';
import { type Configuration, configuration, readConfiguration } from './config.js';
import { ConfigurationError } from './configurationError.js';
import { defaultStateDir } from './defaultStateDir.js';
import { chooseIsolation } from './isolationChoice.js';
import { DEFAULT_LISTEN, isLoopback } from './listen.js';
import { listenFlag } from './listenFlag.js';
import { loggerOf } from './logger.js';
import { supervisorLimits } from './supervisorLimits.js';

export interface SuperviseFlags {
  /** The server's configuration: of it `state_dir`, `run_as`, `log`, `cgroups`, `limits` and `listen` count here. */
  readonly config?: string;
  readonly stateDir?: string;
  /** Where the server listens: children may share its user only if that is loopback. */
  readonly listen?: string;
  readonly dev?: boolean;
  readonly allowSharedUid?: boolean;
  /** Ends the running one instead. */
  readonly stop?: boolean;
  /** With `stop`: when no terminal lives, and does not wait for that. */
  readonly whenIdle?: boolean;
  readonly version: string;
  readonly tell: (line: string) => void;
}

type Settings = Pick<
  Configuration,
  'state_dir' | 'run_as' | 'log' | 'cgroups' | 'limits' | 'listen'
>;

/** A development server keeps to loopback, with the current user as the one owner. */
const DEV_SETTINGS: Settings = {
  run_as: { mode: 'shared-uid' },
  log: { level: 'info', sync: 'interval' },
  cgroups: configuration.shape.cgroups.parse(undefined),
  limits: configuration.shape.limits.parse(undefined),
};

/** Milliseconds that a supervisor gets to end all its terminals. */
const STOP_TIMEOUT_MS = 30_000;

/** Resolves when SIGTERM or SIGINT has ended it and its terminals; with `stop`, when the other has ended. */
export async function runSupervise(flags: SuperviseFlags): Promise<void> {
  const settings = await settingsOf(flags);
  const path = resolve(flags.stateDir ?? settings.state_dir ?? defaultStateDir());
  if (flags.whenIdle && !flags.stop) {
    throw new ConfigurationError('--when-idle says when to end: give --stop with it');
  }
  if (flags.stop && flags.whenIdle) {
    const asked = await endDetachedWhenIdle(path);
    flags.tell(
      asked ? 'the supervisor ends when no terminal lives' : `no supervisor runs on ${path}`,
    );
    return;
  }
  if (flags.stop) {
    const outcome = await stopDetached(path, STOP_TIMEOUT_MS);
    if (outcome === 'vanished') throw vanished();
    flags.tell(
      outcome === 'ended'
        ? 'the supervisor has ended, and its terminals'
        : `no supervisor runs on ${path}`,
    );
    return;
  }
  // Before anything is opened, and before any terminal is.
  closeInherited();
  const stateDir = await openStateDir(path);
  const log = loggerOf(settings);
  const isolation = chooseIsolation({
    runAs: settings.run_as,
    isLocal: isLoopback((listenFlag(flags.listen) ?? settings.listen ?? DEFAULT_LISTEN).host),
    uid: process.getuid?.() ?? 0,
    allowSharedUid: flags.allowSharedUid ?? false,
  });
  const cgroups = await openCgroups(settings.cgroups, log);
  using ending = endingSignals();
  const socket = supervisorSocket(stateDir.path);
  await superviseDetached({
    stateDir,
    log,
    signal: ending.signal,
    whenIdle: ending.whenIdle,
    create: () =>
      createInProcessSupervisor({
        stateDir: stateDir.path,
        stateDirId: stateDir.id,
        isolation,
        version: flags.version,
        log,
        hurry: ending.hurry,
        cgroups,
        logSync: settings.log.sync,
        limits: supervisorLimits(settings),
        locator: () => `unix:${socket}`,
      }),
    onReady: (listening) => flags.tell(`supervising ${stateDir.path} on ${listening}`),
  });
}

function vanished(): Error {
  return new Error(
    'the supervisor vanished before it had ended its terminals: somebody else ended it, with SIGKILL say. What it left is ended and put on record when a supervisor starts on this directory again ("ctx serve" starts one)',
  );
}

async function settingsOf({ config, dev, stop }: SuperviseFlags): Promise<Settings> {
  if (dev && config !== undefined) {
    throw new ConfigurationError(
      '--dev has a configuration of its own: give either it or --config',
    );
  }
  if (config !== undefined) return readConfiguration(config);
  if (dev || stop) return DEV_SETTINGS;
  throw new ConfigurationError('give --config FILE, or --dev for a server to develop with');
}
