/** What a terminal's record says as an instance of it begins, runs, and has ended. */
import type { ExitEvent } from '../core/event.js';
import type { TerminalRecord } from '../core/terminal.js';
import type { TreeMarks } from '../pty/processTree.js';
import type { StartSpec } from './api.js';

/** With the next instance, of which nothing runs yet. */
export function plannedRecord(
  before: TerminalRecord,
  { size = before.size, createdBy }: StartSpec,
): TerminalRecord {
  const { exit: _exit, exitedAt: _exitedAt, pid: _pid, ...kept } = before;
  const instance = before.instance + 1;
  return { ...kept, state: 'created', instance, size, ...(createdBy && { createdBy }) };
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
