/** `ctx serve`: from flags to a server, and from signals to its end. */
import { resolve } from 'node:path';
import type { Logger } from 'pino';
import { type Configuration, readConfiguration } from './config.js';
import { ConfigurationError } from './configurationError.js';
import { defaultStateDir } from './defaultStateDir.js';
import {
  announceDev,
  devConfiguration,
  keepToken,
  prepareDev,
  requireDevAddress,
  retractDev,
} from './dev.js';
import { holdStateDir } from './heldStateDir.js';
import { ownerOf } from './isolationChoice.js';
import { DEFAULT_LISTEN } from './listen.js';
import { requireFreeAddress } from './listenCheck.js';
import { listenFlag } from './listenFlag.js';
import { loggerOf } from './logger.js';
import { type RunningServer, type ServeOptions, serve } from './serve.js';
import { checkStart } from './startChecks.js';
import type { SupervisorKind } from './supervisorChoice.js';

export interface ServeFlags {
  readonly config?: string;
  readonly stateDir?: string;
  readonly listen?: string;
  readonly dev?: boolean;
  readonly allowSharedUid?: boolean;
  /** Default: detached. */
  readonly supervisor?: SupervisorKind;
  readonly version: string;
  /** Where people are told that the server is ready. */
  readonly tell: (line: string) => void;
}

type Endings = Pick<ServeOptions, 'signal' | 'hurry'>;

/**
 * Resolves when SIGTERM or SIGINT has ended the server in order. A second signal ends it at once; but
 * where it owns the terminals it kills these without grace, and a third one ends it at once.
 */
export async function runServe(flags: ServeFlags): Promise<void> {
  if (flags.dev && flags.config !== undefined) {
    throw new ConfigurationError('--dev makes its own configuration: give either it or --config');
  }
  if (!flags.dev && flags.config === undefined) {
    throw new ConfigurationError('give --config FILE, or --dev for a server to develop with');
  }
  const ending = new AbortController();
  const hurrying = new AbortController();
  const end = (signal: NodeJS.Signals) => {
    const ownsTerminals = flags.supervisor === 'in-process';
    if (ending.signal.aborted && (hurrying.signal.aborted || !ownsTerminals)) {
      process.off(signal, end);
      process.kill(process.pid, signal);
    }
    if (ending.signal.aborted) hurrying.abort();
    ending.abort();
  };
  // A server for development has nothing to read again, and goes with the window that it stood in.
  const signals = ['SIGTERM', 'SIGINT', ...(flags.dev ? ['SIGHUP'] : [])];
  for (const signal of signals) process.on(signal, end);
  const endings = { signal: ending.signal, hurry: hurrying.signal };
  try {
    await (flags.config === undefined
      ? serveDev(flags, endings)
      : serveConfigured(flags, flags.config, endings));
  } finally {
    for (const signal of signals) process.off(signal, end);
  }
}

async function serveConfigured(flags: ServeFlags, file: string, endings: Endings): Promise<void> {
  const config = await readConfiguration(file);
  const stateDir = flags.stateDir ?? config.state_dir;
  if (stateDir === undefined) {
    throw new ConfigurationError(`${file}: state_dir is required, here or by --state-dir`);
  }
  const logger = loggerOf(config);
  const options = await checkedOptions({ flags, config, file, stateDir, logger, endings });
  await using held = await holdStateDir(resolve(stateDir));
  await serve({
    ...options,
    stateDir: held,
    superviseArguments: superviseArguments(flags, held.path, ['--config', resolve(file)]),
    onReady: (server) => {
      reloadOnHangUp(server, logger, endings.signal);
      flags.tell(`serving on ${server.address}`);
    },
  });
}

async function serveDev(flags: ServeFlags, endings: Endings): Promise<void> {
  const path = resolve(flags.stateDir ?? defaultStateDir());
  const listen = listenFlag(flags.listen) ?? DEFAULT_LISTEN;
  requireDevAddress(listen);
  await requireFreeAddress(listen, path);
  // Held before anything is made in it: another server's files stay as they are.
  await using stateDir = await holdStateDir(path);
  const files = await prepareDev(stateDir.path);
  const config = devConfiguration(files);
  const logger = loggerOf(config);
  const owner = ownerOf(process.getuid?.() ?? 0);
  await using _token = await keepToken(files, owner, (error) => {
    logger.error({ err: error }, 'no new token');
  });
  try {
    await serve({
      ...(await checkedOptions({ flags, config, file: '--dev', stateDir: path, logger, endings })),
      stateDir,
      superviseArguments: superviseArguments(flags, stateDir.path, ['--dev']),
      onReady: async (server) => {
        await announceDev(files, server.address, owner);
        flags.tell(`serving on ${server.address}; in another shell: . ${files.env}`);
      },
    });
  } finally {
    // Not there any more to be sourced, but for a disk that nothing can be removed from.
    await retractDev(files).catch((error) => logger.warn({ err: error }, 'dev files are left'));
  }
}

interface Setting {
  readonly flags: ServeFlags;
  readonly config: Configuration;
  /** What errors call the configuration. */
  readonly file: string;
  readonly stateDir: string;
  readonly logger: Logger;
  readonly endings: Endings;
}

/** @throws as `checkStart` */
async function checkedOptions(
  setting: Setting,
): Promise<Omit<ServeOptions, 'stateDir' | 'onReady' | 'superviseArguments'>> {
  const { flags, config, endings, ...rest } = setting;
  const { supervisor = 'detached', allowSharedUid = false, version } = flags;
  const listen = listenFlag(flags.listen) ?? config.listen ?? DEFAULT_LISTEN;
  const isElsewhere = supervisor === 'external';
  const checked = await checkStart({ ...rest, config, listen, isElsewhere, allowSharedUid });
  return { config, checked, listen, supervisor, version, logger: rest.logger, ...endings };
}

/** Of the `ctx supervise` that this server starts where none runs: what decides on isolation. */
function superviseArguments(
  { listen, allowSharedUid }: ServeFlags,
  stateDir: string,
  settings: readonly string[],
): readonly string[] {
  return [
    ...['supervise', '--state-dir', stateDir, ...settings],
    ...(listen === undefined ? [] : ['--listen', listen]),
    ...(allowSharedUid ? ['--allow-shared-uid'] : []),
  ];
}

function reloadOnHangUp(server: RunningServer, logger: Logger, signal: AbortSignal): void {
  const reload = () => {
    server.reload().then(
      () => logger.info({}, 'keys, certificates and policies read again'),
      ({ message }: Error) =>
        logger.error({ reason: message }, 'reload failed in part; what was there stays'),
    );
  };
  process.on('SIGHUP', reload);
  signal.addEventListener('abort', () => process.off('SIGHUP', reload), { once: true });
}
