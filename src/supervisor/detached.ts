/** A supervisor in a process of its own: the one of its state directory, until it is told to end. */
import { existsSync } from 'node:fs';
import { readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { errorCode } from '../core/errors.js';
import { ensurePrivateDir, removeTemporary, writeFileAtomic } from '../store/files.js';
import { acquireLock, lockHolder } from '../store/lock.js';
import type { StateDir } from '../store/stateDir.js';
import type { Supervisor } from './api.js';
import type { Log } from './context.js';
import { END_WHEN_IDLE } from './endingSignals.js';
import { serveSupervisor } from './socket/socketServer.js';
import { untilIdle } from './untilIdle.js';

/** Holds whoever supervises the directory, in a process of its own or not. */
export const SUPERVISOR_LOCK = 'supervisor.lock';

/** There while a detached supervisor serves: its pid and a newline. */
export const SUPERVISOR_PID = 'supervisor.pid';

/** What that file is called once it was told to end, until all its terminals have ended. */
const SUPERVISOR_ENDING = 'supervisor.ending';

/** Milliseconds between looks at whether a supervisor that was told to end has ended. */
const STOP_POLL_MS = 50;

export interface DetachedOptions {
  /** As opened; not locked yet. */
  readonly stateDir: StateDir;
  /** Default: `supervisorSocket` of the directory. */
  readonly socketPath?: string;
  readonly log: Log;
  /** Makes the supervisor when the directory is locked; it is disposed at the end. */
  readonly create: () => Promise<Supervisor>;
  /** Its abort ends the supervisor and with it all processes; see `endingSignals`. */
  readonly signal: AbortSignal;
  /** Its abort ends the supervisor as soon as no terminal lives; absent: it is not asked to. */
  readonly whenIdle?: AbortSignal;
  /** Called once, when servers can connect. */
  readonly onReady?: (socketPath: string) => void;
}

/** Where a detached supervisor listens: in a folder of its own, as the state directory may be shared ground. */
export function supervisorSocket(stateDir: string): string {
  return join(stateDir, 'supervisor', 'socket');
}

/**
 * Supervises until the signal aborts. Servers are sent away first, then all terminals are ended.
 * @throws Error that says what to do: the directory is another supervisor's, or the socket's path
 * is too long or unsafe
 */
export async function superviseDetached(options: DetachedOptions): Promise<void> {
  const { stateDir, log } = options;
  const path = options.socketPath ?? supervisorSocket(stateDir.path);
  const pidFile = join(stateDir.path, SUPERVISOR_PID);
  await using _lock = await acquireLock(join(stateDir.path, SUPERVISOR_LOCK));
  if (options.socketPath === undefined) await ensurePrivateDir(join(path, '..'));
  await removeTemporary(stateDir.path, SUPERVISOR_PID);
  const endingFile = join(stateDir.path, SUPERVISOR_ENDING);
  await removeMark(endingFile);
  // Goes last, when the terminals have ended and their ends are on record.
  await using _ending = { [Symbol.asyncDispose]: () => removeMark(endingFile) };
  await using supervisor = await options.create();
  const followsLost = existsSync(pidFile);
  // Before anybody can connect, so that who is served, and ends it then, finds it by the file.
  await writeFileAtomic(pidFile, `${process.pid}\n`);
  const serving = serveSupervisor(supervisor, { path, stateDirId: stateDir.id, log });
  await using _server = await serving.catch(async (error: unknown) => {
    // One that never served was not lost; one that was lost still is.
    if (!followsLost) await removeMark(pidFile);
    throw error;
  });
  try {
    log.info({ path, stateDir: stateDir.path }, 'supervising');
    options.onReady?.(path);
    await toldToEnd(supervisor, options);
    log.info({}, 'the supervisor ends');
  } finally {
    await wherePossible(rename(pidFile, endingFile));
  }
}

async function removeMark(file: string): Promise<void> {
  await wherePossible(rm(file, { force: true }));
}

/**
 * Whether it was done. Where nothing can be written a mark stays, and names a process that holds no
 * lock any more; and somebody else may have taken it away.
 */
async function wherePossible(change: Promise<void>): Promise<boolean> {
  try {
    await change;
    return true;
  } catch (error) {
    if (errorCode(error) === 'EROFS' || errorCode(error) === 'ENOENT') return false;
    throw error;
  }
}

/** Resolves when the supervisor is told to end, or was asked to when idle and is. */
async function toldToEnd(
  supervisor: Supervisor,
  { signal, whenIdle }: DetachedOptions,
): Promise<void> {
  const idle = whenIdle && aborted(whenIdle).then(() => untilIdle(supervisor, signal));
  await Promise.race(idle ? [aborted(signal), idle] : [aborted(signal)]);
}

/**
 * - `ended`: with all its terminals, whose ends are on record
 * - `vanished`: somebody else ended it before that, with SIGKILL say; what it left is for the next one
 * - `absent`: there was none
 */
export type StopOutcome = 'ended' | 'vanished' | 'absent';

/**
 * Tells the directory's detached supervisor to end and waits until it is gone.
 * @throws Error when the directory is supervised within a server, or the time is over
 */
export async function stopDetached(stateDir: string, timeoutMs: number): Promise<StopOutcome> {
  const pid = await signalDetached(stateDir, 'SIGTERM');
  if (pid === undefined) return 'absent';
  const lock = join(stateDir, SUPERVISOR_LOCK);
  const deadline = performance.now() + timeoutMs;
  while (performance.now() < deadline) {
    if ((await lockHolder(lock))?.pid !== pid) return outcomeOf(stateDir, pid);
    await delay(STOP_POLL_MS);
  }
  throw new Error(
    `process ${pid} has not ended in ${timeoutMs} ms; its log says what it waits for`,
  );
}

/**
 * Asks the directory's detached supervisor to end once no terminal lives; it goes on taking new ones
 * until then. False when there is none.
 * @throws Error when the directory is supervised within a server
 */
export async function endDetachedWhenIdle(stateDir: string): Promise<boolean> {
  return (await signalDetached(stateDir, END_WHEN_IDLE)) !== undefined;
}

/** Of one that is gone: in good order it took its mark away. On a disk that lets none do that it is believed. */
async function outcomeOf(stateDir: string, pid: number): Promise<StopOutcome> {
  let vanished = false;
  for (const mark of marksOf(stateDir)) {
    if ((await pidIn(mark)) !== pid) continue;
    // It was told to end: no server is to take it for lost and start another one.
    vanished = await wherePossible(rm(mark, { force: true }));
  }
  return vanished ? 'vanished' : 'ended';
}

function marksOf(stateDir: string): readonly string[] {
  return [SUPERVISOR_PID, SUPERVISOR_ENDING].map((name) => join(stateDir, name));
}

/** The pid of the detached supervisor that has got the signal; undefined when there is none. */
async function signalDetached(
  stateDir: string,
  signal: NodeJS.Signals,
): Promise<number | undefined> {
  const marks = marksOf(stateDir);
  const holder = await lockHolder(join(stateDir, SUPERVISOR_LOCK));
  if (holder === undefined) {
    await Promise.all(marks.map(removeMark));
    return undefined;
  }
  const { pid } = holder;
  // The same process has the lock: the pid is not one that was left and used again.
  const named = async () => {
    // In this order: a mark that is renamed meanwhile has the second name when it has the first no more.
    for (const mark of marks) if ((await pidIn(mark)) === pid) return true;
    return false;
  };
  if (pid === undefined || !(await named())) {
    throw new Error(`${holder.message}, which is no detached supervisor; end that process instead`);
  }
  process.kill(pid, signal);
  return pid;
}

async function pidIn(path: string): Promise<number | undefined> {
  const text = await readFile(path, 'latin1').catch(() => '');
  return /^[1-9][0-9]*\n$/.test(text) ? Number(text) : undefined;
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
}
