/** What a lost supervisor left: its processes are ended, and their end is put on record. */
import { randomUUID } from 'node:crypto';
import type { ExitEvent } from '../core/event.js';
import type { ExitReason } from '../core/exitReason.js';
import { addRewind } from '../core/logRewind.js';
import { isLive, type TerminalRecord } from '../core/terminal.js';
import { endTree } from '../pty/processTree.js';
import { EventLog } from '../store/eventLog.js';
import { writeRecord } from '../store/metadata.js';
import type { RecoveredResource } from '../store/recoveredResource.js';
import type { SupervisorContext } from './context.js';

/** Milliseconds that leftover processes get to end before SIGKILL. */
const LEFTOVER_GRACE_MS = 2_000;

const SUPERVISOR_LOST: ExitReason = 'supervisor-lost';

/**
 * The resource as it is true now. One whose process had ended is as it was found. Of an instance
 * that was alive when its supervisor was lost, the processes are ended (found by the persisted marks,
 * on the same boot only), the one process.exit that it lacks is written, with the reason and no exit
 * code, and the state becomes `error`. A record that another program wrote by the specification alone
 * gets a uid.
 */
export async function recover(
  context: Pick<SupervisorContext, 'bootId' | 'cgroups' | 'logOptions' | 'now'>,
  dir: string,
  found: RecoveredResource,
): Promise<RecoveredResource> {
  const record = found.record.uid === '' ? { ...found.record, uid: randomUUID() } : found.record;
  if (!isLive(record.state)) return { ...found, record };
  const { marks, pid = 0 } = record;
  const rebooted = marks !== undefined && marks.bootId !== context.bootId;
  if (marks && !rebooted) {
    const { nonce, startTime } = marks;
    const cgroup = context.cgroups?.find(nonce);
    const leftover = { pid, startTime, sessionId: pid, ttyDevice: 0, nonce, cgroup };
    await endTree(leftover, { signals: ['SIGHUP', 'SIGKILL'], graceMs: LEFTOVER_GRACE_MS });
    await cgroup?.remove();
  }
  const log = await EventLog.open(dir, context.logOptions);
  try {
    const { socket: _socket, ...kept } = rebooted
      ? await rewound(dir, record, log.nextSeq - 1)
      : record;
    const recorded = log.lastExit;
    const known = recorded && (recorded.instance ?? 1) === record.instance ? recorded : undefined;
    const exit: ExitEvent = known ?? {
      type: 'process.exit',
      seq: log.nextSeq,
      timeMicros: context.now() * 1000,
      reason: SUPERVISOR_LOST,
      ...(record.instance > 1 && { instance: record.instance }),
    };
    if (!known) {
      await log.append([exit]);
      await log.sync();
    }
    const { type: _type, seq: _seq, timeMicros, instance: _instance, ...status } = exit;
    const recovered: TerminalRecord = {
      ...kept,
      state: known ? 'exited' : 'error',
      exit: status,
      exitedAt: Math.floor(timeMicros / 1000),
      updatedAt: context.now(),
    };
    await writeRecord(dir, recovered, { sync: true });
    const seqs = { first: log.firstSeq, next: log.nextSeq };
    return { record: recovered, logBytes: log.size, seqs };
  } finally {
    await log.close();
  }
}

/**
 * Begins another epoch of a log that a power cut may have shortened. On disk before anything is
 * appended: a recovery that is itself cut short must not take its own exit for what survived. The
 * marks go, as no process of another boot is left, so that the epoch is raised once.
 */
async function rewound(
  dir: string,
  { marks: _marks, pid: _pid, ...record }: TerminalRecord,
  lastSeq: number,
): Promise<TerminalRecord> {
  const rewind = { epoch: record.logEpoch, lastSeq };
  const next: TerminalRecord = {
    ...record,
    logEpoch: record.logEpoch + 1,
    logRewinds: addRewind(record.logRewinds ?? [], rewind),
  };
  await writeRecord(dir, next, { sync: true });
  return next;
}
