/** The process tree of an instance as a whole: ended on request, or swept after its top-level exit. */
import { setTimeout as delay } from 'node:timers/promises';
import type { TerminalTuple } from '../core/names.js';
import type { SignalName } from '../core/signals.js';
import type { TerminalRecord } from '../core/terminal.js';
import { endTree, type TreeMarks } from '../pty/processTree.js';
import type { EndResult } from './api.js';
import type { Log, SupervisorContext } from './context.js';

/** Milliseconds in which the exit of an ended tree is expected on record: its drain takes 2 s at most. */
const EXIT_RECORD_MS = 4_000;

/** Milliseconds in which a killed tree is expected to be gone. */
export const KILL_GRACE_MS = 5_000;

/** Of an instance that is open no more: what outlived it is found by them, on the same boot. */
export function recordedMarks(
  { marks, pid }: TerminalRecord,
  { bootId, cgroups }: Pick<SupervisorContext, 'bootId' | 'cgroups'>,
): TreeMarks | undefined {
  if (!marks || pid === undefined || marks.bootId !== bootId) return undefined;
  const { nonce, startTime } = marks;
  return { pid, startTime, sessionId: pid, ttyDevice: 0, nonce, cgroup: cgroups?.find(nonce) };
}

export interface EndingSpec {
  readonly signals: readonly SignalName[];
  readonly graceMs: number;
  /** The processes cannot leave their control group, as they run as another user than this one. */
  readonly isConfined: boolean;
  /** Resolves when the exit is on record. */
  readonly ended: Promise<void>;
}

/** Signals the tree and waits for its end and for the record of it. Without marks nothing lives. */
export async function endInstance(
  marks: TreeMarks | undefined,
  { signals, graceMs, isConfined, ended }: EndingSpec,
): Promise<Omit<EndResult, 'exit'>> {
  const survivors = marks ? await endTree(marks, { signals, graceMs }) : [];
  // On a full disk the exit is on record later than the process is gone; the answer does not wait.
  if (!survivors.some(({ pid }) => pid === marks?.pid)) {
    await Promise.race([ended, delay(EXIT_RECORD_MS, undefined, { ref: false })]);
  }
  const isPopulated = (await marks?.cgroup?.isPopulated()) ?? false;
  const quiescent = survivors.length === 0 && !isPopulated;
  if (quiescent) await marks?.cgroup?.remove();
  return {
    survivors: survivors.map(({ pid, comm }) => ({ pid, comm })),
    quiescent,
    certain: marks?.cgroup !== undefined && isConfined,
  };
}

/**
 * Asks the tree to end, and after the grace, or at once when `hurry` aborts, makes it. Answers how
 * many processes are left.
 */
export async function stopThenKill(
  marks: TreeMarks,
  graceMs: number,
  hurry?: AbortSignal,
): Promise<number> {
  const signals = ['SIGTERM', 'SIGHUP'] as const;
  let left = await endTree(marks, { signals, graceMs, ...(hurry && { hurry }) });
  if (left.length > 0) {
    left = await endTree(marks, { signals: ['SIGKILL'], graceMs: KILL_GRACE_MS });
  }
  await marks.cgroup?.remove();
  return left.length;
}

/** Ends what outlived the top-level process of a terminal that was created so. */
export async function sweepTree(
  marks: TreeMarks,
  log: Log,
  { owner, id }: Pick<TerminalTuple, 'owner' | 'id'>,
): Promise<void> {
  const left = await endTree(marks, { signals: ['SIGHUP', 'SIGKILL'], graceMs: KILL_GRACE_MS });
  await marks.cgroup?.remove();
  if (left.length === 0) return;
  log.warn({ owner, id, survivors: left.length }, 'processes outlived the sweep');
}
