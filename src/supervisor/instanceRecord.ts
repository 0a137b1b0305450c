/** What a terminal's record says as an instance of it begins, runs, and has ended. */
import type { ExitEvent } from '../core/event.js';
import type { RequestMark, TerminalRecord } from '../core/terminal.js';
import type { TreeMarks } from '../pty/processTree.js';
import type { StartSpec } from './api.js';
import { requestReused } from './requestMemory.js';

/** With the next instance, of which nothing runs yet. */
export function plannedRecord(
  before: TerminalRecord,
  { size = before.size, createdBy, request }: StartSpec,
): TerminalRecord {
  const { exit: _exit, exitedAt: _exitedAt, pid: _pid, startRequest: _request, ...kept } = before;
  return {
    ...kept,
    state: 'created',
    instance: before.instance + 1,
    size,
    ...(createdBy && { createdBy }),
    ...(request && { startRequest: request }),
  };
}

/** Whether this request made the latest instance, also under an earlier supervisor. @throws REQUEST_ID_REUSED */
export function wasStartedBy(
  { startRequest }: TerminalRecord,
  request: RequestMark | undefined,
): boolean {
  if (!request || startRequest?.key !== request.key) return false;
  if (startRequest.bodyHash !== request.bodyHash) throw requestReused();
  return true;
}

export function runningRecord(
  planned: TerminalRecord,
  { pid, startTime, nonce }: TreeMarks,
  { bootId, socket }: { readonly bootId: string; readonly socket: string },
): TerminalRecord {
  return { ...planned, state: 'running', pid, marks: { nonce, startTime, bootId }, socket };
}

export function exitedRecord(
  { socket: _socket, ...running }: TerminalRecord,
  { type: _type, seq: _seq, timeMicros, instance: _ordinal, ...exit }: ExitEvent,
): TerminalRecord {
  return { ...running, state: 'exited', exit, exitedAt: Math.floor(timeMicros / 1000) };
}
