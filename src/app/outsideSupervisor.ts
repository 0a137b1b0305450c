/** A supervisor outside of the server's process: found, awaited, and where that is asked for started. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { errorCode, GranttyError } from '../core/errors.js';
import { ensurePrivateDir } from '../store/files.js';
import { lockHolder } from '../store/lock.js';
import type { StateDir } from '../store/stateDir.js';
import type { Supervisor } from '../supervisor/api.js';
import { SUPERVISOR_LOCK, SUPERVISOR_PID, supervisorSocket } from '../supervisor/detached.js';
import { SupervisorRefusal } from '../supervisor/socket/refusal.js';
import { connectSupervisor } from '../supervisor/socket/socketClient.js';

/** What a supervisor that a server starts writes to standard error. */
const LOG_FILE = 'supervisor.log';

/** Milliseconds within which a supervisor answers: it looks at every record first, and ends leftovers. */
const START_PATIENCE_MS = 60_000;

/** Milliseconds between looks for a supervisor: doubled from the shortest to the longest. */
const SHORTEST_LOOK_MS = 50;
const LONGEST_LOOK_MS = 2_000;

export interface OutsideOptions {
  readonly stateDir: StateDir;
  readonly logger: Logger;
  /** Starts one where there is none, and again when it is lost. False: somebody else does. */
  readonly mayStart: boolean;
  /** Hears when it was lost, and when there is one again. */
  readonly onChange: (connected: boolean) => void;
  /** Milliseconds for which one is waited for. Default: 60 s. */
  readonly patienceMs?: number;
  /** Arguments of `ctx` that make a supervisor with the isolation that this server chose. */
  readonly superviseArguments: readonly string[];
}

type Link = Parameters<typeof connectSupervisor>[0];

/**
 * Connects to the supervisor that has the directory, also to one that is about to answer. Disposing
 * leaves it and its terminals alone.
 * @throws Error that says what to do
 */
export async function openOutside(options: OutsideOptions): Promise<Supervisor> {
  const { stateDir, logger } = options;
  const path = supervisorSocket(stateDir.path);
  await ensurePrivateDir(dirname(path));
  /** Until the lost one has been found again, or nobody looks for it any more. */
  let search = new AbortController();
  const onChange = (connected: boolean) => {
    search.abort();
    options.onChange(connected);
    if (connected) return;
    if (wasToldToEnd(stateDir)) logger.warn({}, whenToldToEnd(options));
    if (!options.mayStart) return;
    search = new AbortController();
    void replaceLost(options, search.signal);
  };
  const supervisor = await reach(options, { path, stateDirId: stateDir.id, log: logger, onChange });
  const disconnect = supervisor[Symbol.asyncDispose].bind(supervisor);
  supervisor[Symbol.asyncDispose] = () => {
    search.abort();
    return disconnect();
  };
  return supervisor;
}

async function reach(options: OutsideOptions, link: Link): Promise<Supervisor> {
  const { stateDir, logger, mayStart, patienceMs = START_PATIENCE_MS } = options;
  const logPath = join(stateDir.path, LOG_FILE);
  const deadline = performance.now() + patienceMs;
  let waits = false;
  let child: ChildProcess | undefined;
  for (let wait = SHORTEST_LOOK_MS; ; wait = Math.min(2 * wait, LONGEST_LOOK_MS)) {
    try {
      return await connectSupervisor(link);
    } catch (error) {
      if (error instanceof SupervisorRefusal) throw unfit(error, options);
      if (performance.now() > deadline) throw mayStart ? error : absent(error, options);
    }
    if (!mayStart && !waits) {
      waits = true;
      logger.warn(
        { path: link.path, patienceMs },
        `no supervisor answers yet; waiting for it: ${howToStart(options)}`,
      );
    }
    if (mayStart && !runs(child)) {
      const free = await isFree(stateDir);
      // One that was killed says nothing about the next one.
      if (free && typeof child?.exitCode === 'number') {
        throw new GranttyError(
          'SUPERVISOR_UNAVAILABLE',
          `the supervisor ended with ${child.exitCode} before it answered; see ${logPath}`,
        );
      }
      if (free) {
        child = await start(options);
        logger.info({ supervisor: child.pid, log: logPath }, 'supervisor started');
      }
    }
    await delay(wait);
  }
}

/**
 * Until the signal aborts, starts another supervisor whenever there is none, unless the one that was
 * there had been told to end: then its pid file is gone.
 */
async function replaceLost(options: OutsideOptions, signal: AbortSignal): Promise<void> {
  const { stateDir, logger } = options;
  // In this order: one that was told to end removes the file before it lets go of the lock.
  const wasLost = async () => (await isFree(stateDir)) && !wasToldToEnd(stateDir);
  let child: ChildProcess | undefined;
  for (let wait = SHORTEST_LOOK_MS; !signal.aborted; wait = Math.min(2 * wait, LONGEST_LOOK_MS)) {
    try {
      if (!runs(child) && (await wasLost()) && !signal.aborted) {
        child = await start(options);
        logger.warn({ supervisor: child.pid }, 'the supervisor was lost; another one was started');
      }
    } catch (error) {
      logger.error({ err: error }, 'the supervisor was lost, and no other could be started');
    }
    await delay(wait, undefined, { signal, ref: false }).catch(() => {});
  }
}

/** To be asked once its socket or its lock is let go of: its pid file goes before both. */
function wasToldToEnd(stateDir: StateDir): boolean {
  return !existsSync(join(stateDir.path, SUPERVISOR_PID));
}

function whenToldToEnd({ mayStart }: OutsideOptions): string {
  const what = 'the supervisor was told to end, and its terminals end with it';
  return mayStart
    ? `${what}; no other one is started: calls answer SUPERVISOR_UNAVAILABLE until this server is started again`
    : `${what}; calls answer SUPERVISOR_UNAVAILABLE until whoever starts it has started it again`;
}

function runs(child: ChildProcess | undefined): boolean {
  return child !== undefined && child.exitCode === null && child.signalCode === null;
}

async function isFree(stateDir: StateDir): Promise<boolean> {
  return (await lockHolder(join(stateDir.path, SUPERVISOR_LOCK))) === undefined;
}

function absent(error: unknown, options: OutsideOptions): Error {
  const { stateDir, patienceMs = START_PATIENCE_MS } = options;
  return new Error(
    `no supervisor answered at ${supervisorSocket(stateDir.path)} within ${patienceMs / 1000} s, and with --supervisor external none is started: ${howToStart(options)}, or leave the flag out`,
    { cause: error },
  );
}

function howToStart({ superviseArguments }: OutsideOptions): string {
  return `start it ("ctx ${superviseArguments.join(' ')}", or its unit)`;
}

function unfit(refusal: SupervisorRefusal, options: OutsideOptions): Error {
  return new Error(
    `the running supervisor refuses this server: ${refusal.message}. Serve from the release that started it, or ${howToEnd(options)}`,
    { cause: refusal },
  );
}

/** Advice on one that is there; who starts an external one would start it again. */
export function howToEnd({
  stateDir,
  mayStart,
}: Pick<OutsideOptions, 'stateDir' | 'mayStart'>): string {
  const how = mayStart
    ? `end it with "ctx supervise --stop --state-dir ${stateDir.path}"`
    : 'have whoever started it, a service manager say, end it and start it anew';
  return `${how}, which ends its terminals`;
}

/** What of the environment a supervisor needs; no setting of the server is for it to know. */
const PASSED_ON = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'XDG_STATE_HOME'];

/**
 * In a session of its own, so that no hang-up of this one's terminal reaches it.
 * @throws GranttyError SUPERVISOR_UNAVAILABLE when the host gives no process
 */
async function start({ stateDir, superviseArguments }: OutsideOptions): Promise<ChildProcess> {
  await using log = await open(join(stateDir.path, LOG_FILE), 'a', 0o600);
  const main = process.argv[1];
  if (main === undefined) throw new Error('the program does not know its own file');
  const env = Object.fromEntries(
    PASSED_ON.flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
  const child = spawn(process.execPath, [...process.execArgv, main, ...superviseArguments], {
    cwd: '/',
    detached: true,
    env,
    stdio: ['ignore', log.fd, log.fd],
  });
  child.unref();
  try {
    await once(child, 'spawn');
  } catch (error) {
    throw new GranttyError(
      'SUPERVISOR_UNAVAILABLE',
      `no supervisor could be started: ${process.execPath} gives ${errorCode(error)}; it must be there, and the host have room for a process`,
      { cause: error },
    );
  }
  return child;
}
