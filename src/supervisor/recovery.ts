/** What a lost supervisor left: its processes are ended, and their end is put on record. */
import { randomUUID } from 'node:crypto';
import type { ExitEvent } from '../core/event.js';
import { isLive, type TerminalRecord } from '../core/terminal.js';
import { endTree } from '../pty/processTree.js';
import { EventLog } from '../store/eventLog.js';
import { writeRecord } from '../store/metadata.js';
import type { SupervisorContext } from './context.js';

/** Milliseconds that leftover processes get to end before SIGKILL. */
const LEFTOVER_GRACE_MS = 2_000;

export const SUPERVISOR_LOST = 'supervisor-lost';

/**
 * The record as it is true now. For an instance that was alive when its supervisor was lost: ends
 * its processes (found by the persisted marks, on the same boot only), writes the one process.exit
 * that it lacks, with the reason and no exit code, and makes the state `error`. A record that
 * another program wrote by the specification alone gets a uid.
 */
export async function recover(
  context: SupervisorContext,
  dir: string,
  record: TerminalRecord,
): Promise<TerminalRecord> {
  if (record.uid === '') return recover(context, dir, { ...record, uid: randomUUID() });
  if (!isLive(record.state)) return record;
  const { marks, pid = 0, socket: _socket, ...kept } = record;
  const rebooted = marks !== undefined && marks.bootId !== context.bootId;
  if (marks && !rebooted) {
    const { nonce, startTime } = marks;
    const leftover = { pid, startTime, sessionId: pid, ttyDevice: 0, nonce };
    await endTree(leftover, { signals: ['SIGHUP', 'SIGKILL'], graceMs: LEFTOVER_GRACE_MS });
  }
  const log = await EventLog.open(dir, context.logOptions);
  try {
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
      ...(marks && { marks }),
      ...(pid > 0 && { pid }),
      state: known ? 'exited' : 'error',
      exit: status,
      exitedAt: Math.floor(timeMicros / 1000),
      updatedAt: context.now(),
      logEpoch: record.logEpoch + (rebooted ? 1 : 0),
    };
    await writeRecord(dir, recovered, { sync: true });
    return recovered;
  } finally {
    await log.close();
  }
}
