/** The supervisor that a server works with: within its own process, or the detached one. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Logger } from 'pino';
import { errorCode } from '../core/errors.js';
import type { TerminalTuple } from '../core/names.js';
import { ensurePrivateDir } from '../store/files.js';
import { acquireLock } from '../store/lock.js';
import type { StateDir } from '../store/stateDir.js';
import type { Supervisor } from '../supervisor/api.js';
import { SUPERVISOR_LOCK, SUPERVISOR_PID, supervisorSocket } from '../supervisor/detached.js';
import { createInProcessSupervisor } from '../supervisor/inProcess.js';
import type { Isolation } from '../supervisor/isolation.js';
import { connectSupervisor } from '../supervisor/socket/socketClient.js';
import { openCgroups } from './cgroups.js';
import type { Configuration } from './config.js';
import { supervisorLimits } from './supervisorLimits.js';

/**
 * - `detached`: a process of its own, started where none answers and again when it is lost; the default
 * - `external`: a process that somebody else starts, and starts again, a service manager say
 * - `in-process`: no process of its own; its terminals end with this one
 */
export type SupervisorKind = 'detached' | 'external' | 'in-process';

/** What the detached supervisor that a server starts writes to standard error. */
const LOG_FILE = 'supervisor.log';

/** Milliseconds within which a supervisor answers: it looks at every record first. */
const START_PATIENCE_MS = 60_000;

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
  const lock = await acquireLock(join(stateDir.path, SUPERVISOR_LOCK));
  try {
    const supervisor = await createInProcessSupervisor({
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

async function connect(options: SupervisorOptions): Promise<Supervisor> {
  const { stateDir, logger, isolation } = options;
  const path = supervisorSocket(stateDir.path);
  const onChange = (connected: boolean) => {
    options.onChange(connected);
    if (!connected && options.kind === 'detached') void replaceLost(options);
  };
  const link = { path, stateDirId: stateDir.id, log: logger, onChange };
  await ensurePrivateDir(dirname(path));
  const running = await connectSupervisor(link).catch(() => undefined);
  const supervisor =
    running ??
    (await (options.kind === 'external' ? awaitExternal : startAndConnect)(options, link));
  const info = await supervisor.info();
  if (info.isolation === isolation.mode) return supervisor;
  await supervisor[Symbol.asyncDispose]();
  throw new Error(
    `the running supervisor (pid ${info.pid}) runs terminals ${info.isolation}, but this server is configured for ${isolation.mode}; end it with "ctx supervise --stop --state-dir ${stateDir.path}", which ends its terminals, or change run_as back`,
  );
}

type Link = Parameters<typeof connectSupervisor>[0];

async function awaitExternal(
  { stateDir, logger, patienceMs = START_PATIENCE_MS }: SupervisorOptions,
  link: Link,
): Promise<Supervisor> {
  logger.warn({ path: link.path, patienceMs }, 'no supervisor answers yet; waiting for it');
  try {
    return await connectSupervisor({ ...link, patienceMs });
  } catch (error) {
    throw new Error(
      `no supervisor answered at ${link.path} within ${patienceMs / 1000} s, and with --supervisor external none is started: start it ("ctx supervise --state-dir ${stateDir.path}", or its unit), or leave the flag out`,
      { cause: error },
    );
  }
}

async function startAndConnect(
  { stateDir, logger, superviseArguments }: SupervisorOptions,
  link: Link,
): Promise<Supervisor> {
  const logPath = join(stateDir.path, LOG_FILE);
  const child = await start(superviseArguments, logPath);
  const giveUp = new AbortController();
  try {
    const ended = once(child, 'exit', { signal: giveUp.signal }).then(([code]) => {
      throw new Error(`the supervisor ended with ${code} before it answered; see ${logPath}`);
    });
    const supervisor = await Promise.race([
      connectSupervisor({ ...link, patienceMs: START_PATIENCE_MS }),
      ended,
    ]);
    logger.info({ pid: child.pid, log: logPath }, 'supervisor started');
    return supervisor;
  } finally {
    giveUp.abort();
    child.unref();
  }
}

/** What of the environment a supervisor needs; no setting of the server is for it to know. */
const PASSED_ON = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'XDG_STATE_HOME'];

/**
 * Starts another supervisor when the one that was lost had not been told to end: its pid file is
 * there still, and nobody holds its lock. The connection is made again by itself.
 */
async function replaceLost({
  stateDir,
  logger,
  superviseArguments,
}: SupervisorOptions): Promise<void> {
  try {
    await access(join(stateDir.path, SUPERVISOR_PID));
    const lock = await acquireLock(join(stateDir.path, SUPERVISOR_LOCK));
    await lock[Symbol.asyncDispose]();
    const child = await start(superviseArguments, join(stateDir.path, LOG_FILE));
    child.unref();
    logger.warn({ pid: child.pid }, 'the supervisor was lost; another one was started');
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ELOCKED') return;
    logger.error({ err: error }, 'the supervisor was lost, and no other could be started');
  }
}

/** In a session of its own, so that no hang-up of this one's terminal reaches it. */
async function start(args: readonly string[], logPath: string): Promise<ChildProcess> {
  await using log = await open(logPath, 'a', 0o600);
  const main = process.argv[1];
  if (main === undefined) throw new Error('the program does not know its own file');
  const env = Object.fromEntries(
    PASSED_ON.flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
  return spawn(process.execPath, [...process.execArgv, main, ...args], {
    cwd: '/',
    detached: true,
    env,
    stdio: ['ignore', log.fd, log.fd],
  });
}
