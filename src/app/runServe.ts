/** `ctx serve`: from flags to a server, and from signals to its end. */
import { resolve } from 'node:path';
import { type Logger, pino } from 'pino';
import { type Configuration, ConfigurationError, readConfiguration } from './config.js';
import { defaultStateDir } from './defaultStateDir.js';
import { announceDev, devConfiguration, keepToken, prepareDev, retractDev } from './dev.js';
import { holdStateDir } from './heldStateDir.js';
import { ownerOf } from './isolationChoice.js';
import { DEFAULT_LISTEN, type ListenAddress, parseListen } from './listen.js';
import { type RunningServer, type ServeOptions, serve } from './serve.js';

export interface ServeFlags {
  readonly config?: string;
  readonly stateDir?: string;
  readonly listen?: string;
  readonly dev?: boolean;
  readonly allowSharedUid?: boolean;
  readonly version: string;
  /** Where people are told that the server is ready. */
  readonly tell: (line: string) => void;
}

/** Resolves when SIGTERM or SIGINT has ended the server in order. A second signal ends it at once. */
export async function runServe(flags: ServeFlags): Promise<void> {
  if (flags.dev && flags.config !== undefined) {
    throw new ConfigurationError('--dev makes its own configuration: give either it or --config');
  }
  if (!flags.dev && flags.config === undefined) {
    throw new ConfigurationError('give --config FILE, or --dev for a server to develop with');
  }
  const ending = new AbortController();
  const end = (signal: NodeJS.Signals) => {
    if (ending.signal.aborted) {
      process.off(signal, end);
      process.kill(process.pid, signal);
    }
    ending.abort();
  };
  process.on('SIGTERM', end).on('SIGINT', end);
  try {
    await (flags.config === undefined
      ? serveDev(flags, ending.signal)
      : serveConfigured(flags, flags.config, ending.signal));
  } finally {
    process.off('SIGTERM', end).off('SIGINT', end);
  }
}

async function serveConfigured(
  flags: ServeFlags,
  file: string,
  signal: AbortSignal,
): Promise<void> {
  const config = await readConfiguration(file);
  const stateDir = flags.stateDir ?? config.state_dir;
  if (stateDir === undefined) {
    throw new ConfigurationError(`${file}: state_dir: is missing; --state-dir may give it too`);
  }
  await using held = await holdStateDir(resolve(stateDir));
  const logger = loggerOf(config);
  await serve({
    ...commonOptions(flags, config, logger, signal),
    stateDir: held,
    onReady: (server) => {
      reloadOnHangUp(server, logger, signal);
      flags.tell(`serving on ${server.address}`);
    },
  });
}

async function serveDev(flags: ServeFlags, signal: AbortSignal): Promise<void> {
  // Held before anything is made in it: another server's files stay as they are.
  await using stateDir = await holdStateDir(resolve(flags.stateDir ?? defaultStateDir()));
  const listen = listenOf(flags) ?? DEFAULT_LISTEN;
  const files = await prepareDev(stateDir.path, listen);
  const config = devConfiguration(files);
  const logger = loggerOf(config);
  const owner = ownerOf(process.getuid?.() ?? 0);
  await using _token = await keepToken(files, owner, (error) => {
    logger.error({ err: error }, 'no new token');
  });
  try {
    await serve({
      ...commonOptions(flags, config, logger, signal),
      stateDir,
      onReady: async (server) => {
        await announceDev(files, server.address, owner);
        flags.tell(`serving on ${server.address}; in another shell: . ${files.env}`);
      },
    });
  } finally {
    await retractDev(files);
  }
}

function commonOptions(
  flags: ServeFlags,
  config: Configuration,
  logger: Logger,
  signal: AbortSignal,
): Omit<ServeOptions, 'stateDir' | 'onReady'> {
  return {
    config,
    listen: listenOf(flags) ?? config.listen ?? DEFAULT_LISTEN,
    allowSharedUid: flags.allowSharedUid ?? false,
    version: flags.version,
    logger,
    signal,
  };
}

function listenOf(flags: ServeFlags): ListenAddress | undefined {
  if (flags.listen === undefined) return undefined;
  const address = parseListen(flags.listen);
  if (address) return address;
  throw new ConfigurationError(
    `--listen "${flags.listen}": write HOST:PORT or [IPV6]:PORT, like 127.0.0.1:7443`,
  );
}

/** To standard error, without buffering: the last lines of a crash are the ones that matter. */
function loggerOf({ log }: Configuration): Logger {
  return pino({ level: log.level }, pino.destination({ dest: 2, sync: true }));
}

function reloadOnHangUp(server: RunningServer, logger: Logger, signal: AbortSignal): void {
  const reload = () => {
    server.reload().then(
      () => logger.info({}, 'keys, certificates and policies read again'),
      (error: unknown) =>
        logger.error({ err: error }, 'reload failed in part; what was there stays'),
    );
  };
  process.on('SIGHUP', reload);
  signal.addEventListener('abort', () => process.off('SIGHUP', reload), { once: true });
}
