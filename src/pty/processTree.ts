/** The processes that belong to one terminal instance, and signals to exactly them. */
import { readlinkSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { errorCode } from '../core/errors.js';
import { type SignalName, signalNumbers } from '../core/signals.js';
import type { Cgroup } from './cgroup.js';
import type { Birth } from './forkOrder.js';
import { isLeader } from './nativePty.js';
import {
  ignoresSignal,
  type ProcessInfo,
  type ProcessTable,
  readProcess,
  scanProcesses,
} from './processTable.js';

export type { ProcessInfo } from './processTable.js';

/** By what the processes of an instance are recognised. */
export interface TreeMarks {
  /** 0 when it is not known: then it is no mark. */
  readonly pid: number;
  /** Of `pid`; 0 when it had ended before it could be read. */
  readonly startTime: number;
  /** 0 when it is not known. To the kernel 0 is the session of its own threads and of who is outside. */
  readonly sessionId: number;
  /** 0 once the master is closed: the kernel gives the number to the next terminal. */
  readonly ttyDevice: number;
  /** CTX_INSTANCE. */
  readonly nonce: string;
  /**
   * This process forked `pid`. What is orphaned in the tree is then a child of this process or of one
   * of its ancestors (PR_SET_CHILD_SUBREAPER, prctl(2)), so that few environments have to be read.
   */
  readonly isOurs?: boolean;
  /** Where the instance has one. */
  readonly cgroup?: Cgroup | undefined;
}

/** Environments read at one time: few files open, and I/O threads left for others. */
const READ_WIDTH = 16;

/**
 * The live processes of the instance: the top-level process, what shares its session, its
 * controlling terminal or its CTX_INSTANCE, and all descendants of these. One that left all four
 * behind (a cleared environment, a session of its own, a parent that ended) is not found.
 * @param birth of the top-level process, where it is known: nothing that is older is looked at
 */
export async function findTree(marks: TreeMarks, birth?: Birth): Promise<ProcessInfo[]> {
  const table = await scanProcesses(birth);
  const inTree = new Set<number>();
  const leader = table.processes.find(({ pid }) => pid === marks.sessionId);
  // A number that another process leads now names another session.
  const sameSession = leader === undefined || leader.startTime === marks.startTime;
  const unsettled: ProcessInfo[] = [];
  for (const process of table.processes) {
    if (process.startTime < marks.startTime) continue;
    if (
      (process.pid === marks.pid && process.startTime === marks.startTime) ||
      (sameSession && marks.sessionId !== 0 && process.session === marks.sessionId) ||
      (marks.ttyDevice !== 0 && process.ttyDevice === marks.ttyDevice && seesOurTtys(process.pid))
    ) {
      inTree.add(process.pid);
    } else {
      unsettled.push(process);
    }
  }
  const asked = marks.isOurs ? unsettled.filter(mayBeOrphan(table)) : unsettled;
  for (let begin = 0; begin < asked.length; begin += READ_WIDTH) {
    const batch = asked.slice(begin, begin + READ_WIDTH);
    await Promise.all(
      batch.map(async ({ pid }) => {
        if ((await table.instanceOf(pid)) === marks.nonce) inTree.add(pid);
      }),
    );
  }
  for (const pid of (await marks.cgroup?.pids()) ?? []) inTree.add(pid);
  addDescendants(inTree, unsettled);
  inTree.delete(process.pid);
  return table.processes.filter(({ pid }) => inTree.has(pid));
}

/**
 * Every mount of devpts counts its terminals from 0 (the kernel's filesystems/devpts.rst): in a container
 * the number of one of ours is somebody else's. What cannot be looked at is not ours to signal either.
 */
function seesOurTtys(pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/ns/mnt`) === readlinkSync('/proc/self/ns/mnt');
  } catch {
    return false;
  }
}

/**
 * Whether a process has, as far as the scan knows, a parent that it may have been given when its own
 * ended: an ancestor of ours, the first process of all, or one that the scan did not meet. The
 * top-level process of another terminal is no orphan.
 */
function mayBeOrphan({ processes, covers }: ProcessTable): (process: ProcessInfo) => boolean {
  const parents = new Map(processes.map(({ pid, parent }) => [pid, parent]));
  const parentOf = (pid: number) => parents.get(pid) ?? readProcess(pid)?.parent ?? 1;
  const reapers = new Set([1, process.pid]);
  for (let pid = process.ppid; pid > 0 && !reapers.has(pid); pid = parentOf(pid)) reapers.add(pid);
  return ({ pid, parent }) => {
    if (parent === process.pid && isLeader(pid)) return false;
    return reapers.has(parent) || (covers(parent) && !parents.has(parent));
  };
}

/**
 * Signals each process that still is the one it was, and answers which those are: also those that
 * refuse because they run as somebody else. Between the check and the signal lie microseconds, in
 * which the kernel would have to hand out its whole range of pids to mistake one.
 */
export function signalProcesses(
  processes: readonly ProcessInfo[],
  signal: SignalName,
): ProcessInfo[] {
  return processes.filter(({ pid, startTime }) => {
    if (readProcess(pid)?.startTime !== startTime) return false;
    try {
      process.kill(pid, signalNumbers[signal]);
      return true;
    } catch (error) {
      return errorCode(error) === 'EPERM';
    }
  });
}

function addDescendants(inTree: Set<number>, others: readonly ProcessInfo[]): void {
  const children = new Map<number, number[]>();
  for (const { pid, parent } of others) {
    const siblings = children.get(parent);
    if (siblings) siblings.push(pid);
    else children.set(parent, [pid]);
  }
  const reached = [...inTree];
  for (let parent = reached.pop(); parent !== undefined; parent = reached.pop()) {
    for (const child of children.get(parent) ?? []) {
      if (inTree.has(child)) continue;
      inTree.add(child);
      reached.push(child);
    }
  }
}

export interface EndOptions {
  /**
   * In this order. Each process gets the first at once. It gets the next when it ignores what it got
   * before, and the others when half of the grace is over: one that ends in good order on SIGTERM is
   * not cut short by the SIGHUP that an interactive shell needs. The last is repeated, ever more
   * rarely: bash at its prompt misses one SIGHUP in thirty (seen).
   */
  readonly signals: readonly SignalName[];
  /** Milliseconds to wait until nothing of the tree lives. */
  readonly graceMs: number;
  /** Its abort ends the grace. */
  readonly hurry?: AbortSignal;
}

/** Milliseconds between two looks at the tree: short at first, since most trees end at once. */
const FIRST_LOOK_MS = 5;
const LONGEST_LOOK_MS = 100;

/**
 * Signals the tree, what it forks meanwhile included, and waits until two scans in a row found
 * nothing of it, or the grace is over. Answers what still lived then. Two, because a scan goes by
 * pid: a child may get a pid that was passed and its parent end before its own is reached.
 */
export async function endTree(
  marks: TreeMarks,
  { signals, graceMs, hurry }: EndOptions,
): Promise<ProcessInfo[]> {
  const begin = performance.now();
  const sent = new Map<string, Sent>();
  let quietScans = 0;
  let wait = FIRST_LOOK_MS;
  for (let isFirst = true; ; isFirst = false) {
    if (isFirst && signals.includes('SIGKILL') && signals.length === 1) await marks.cgroup?.kill();
    const found = await findTree(marks);
    if (found.length === 0 && !(await marks.cgroup?.isPopulated())) {
      quietScans += 1;
      if (quietScans === 2) return [];
      continue;
    }
    quietScans = 0;
    const elapsed = performance.now() - begin;
    for (const process of found) {
      const key = `${process.pid}:${process.startTime}`;
      const all = elapsed >= graceMs / 2;
      sent.set(key, sendDue(process, signals, sent.get(key), elapsed, all));
    }
    const left = hurry?.aborted ? 0 : graceMs - elapsed;
    if (left <= 0 && !isFirst) return found;
    await setTimeout(Math.max(0, Math.min(wait, left)), undefined, { signal: hurry }).catch(
      () => {},
    );
    wait = Math.min(wait * 2, LONGEST_LOOK_MS);
  }
}

/** What one process has got. */
interface Sent {
  readonly count: number;
  /** Milliseconds from the beginning at which the last signal is repeated. */
  readonly repeatAt: number;
}

const FIRST_REPEAT_MS = 200;

function sendDue(
  process: ProcessInfo,
  signals: readonly SignalName[],
  sent: Sent | undefined,
  elapsed: number,
  all: boolean,
): Sent {
  const before = sent?.count ?? 0;
  let count = before;
  for (const signal of signals.slice(before)) {
    const last = signals[count - 1];
    if (last !== undefined && !all && !ignoresSignal(process.pid, signalNumbers[last])) break;
    signalProcesses([process], signal);
    count += 1;
  }
  // A stopped process takes no signal but SIGKILL until it goes on.
  if (count > before && process.state === 'T') signalProcesses([process], 'SIGCONT');
  if (sent === undefined || count > before) return { count, repeatAt: elapsed + FIRST_REPEAT_MS };
  const last = signals.at(-1);
  if (count < signals.length || elapsed < sent.repeatAt || last === undefined) return sent;
  signalProcesses([process], last);
  return { count, repeatAt: elapsed * 2 };
}
