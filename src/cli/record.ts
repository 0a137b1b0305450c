/** A terminal's record as people read it. */
import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import { shownCommand } from '../core/shellBootstrap.js';
import {
  type Attachment,
  AttachmentKind,
  AttachmentMode,
  ExitReason,
  type ExitStatus,
  OnExit,
  PauseReason,
  type Terminal,
  TerminalState,
} from '../gen/public/grantty/v1/terminal_pb.js';
import { formatRecord, formatTable } from './table.js';

export function terminalRecord(terminal: Terminal): string {
  const labels = Object.entries(terminal.labels).map(([key, value]) => `${key}=${value}`);
  const record = formatRecord([
    ['id', terminal.ref?.id],
    ['owner', terminal.ref?.owner],
    ['agent', terminal.agent],
    ['session', terminal.session],
    ['uid', terminal.uid],
    ['state', stateName(terminal.state)],
    ['exit', exitText(terminal.exitStatus)],
    ['pid', terminal.pid?.toString()],
    ['command', commandText(terminal.command)],
    ['cwd', terminal.cwd],
    ['size', sizeText(terminal)],
    ['title', terminal.title],
    ['name', terminal.name],
    ['labels', labels.join(' ')],
    ['instance', String(terminal.instance)],
    ['events', eventsText(terminal)],
    ['log epoch', String(terminal.logEpoch)],
    ['backend', terminal.backend],
    ['on exit', OnExit[terminal.onExit]?.toLowerCase()],
    ['created', timeText(terminal.createdAt)],
    ['updated', timeText(terminal.updatedAt)],
    ['exited', timeText(terminal.exitedAt)],
    ['created by', terminal.createdBy?.subject],
    ['paused', pauseText(terminal.paused)],
    ['socket', terminal.socket],
  ]);
  return terminal.attachments.length === 0
    ? record
    : `${record}\n\n${attachmentTable(terminal.attachments)}`;
}

function attachmentTable(attachments: readonly Attachment[]): string {
  return formatTable(
    ['ATTACHED', 'KIND', 'MODE', 'SUBJECT', 'ACTOR'],
    attachments.map(({ since, kind, mode, subject, actor }) => [
      timeText(since) ?? '-',
      AttachmentKind[kind]?.toLowerCase() ?? String(kind),
      AttachmentMode[mode]?.toLowerCase().replaceAll('_', '/') ?? String(mode),
      subject,
      actor || '-',
    ]),
  );
}

export function stateName(state: TerminalState): string {
  return TerminalState[state]?.toLowerCase() ?? String(state);
}

/** `0`, `143 (SIGTERM)`, `143 (SIGTERM), idle limit`, or why there is no code. */
export function exitText(status: ExitStatus | undefined): string | undefined {
  if (status === undefined) return undefined;
  if (status.exitCode === undefined) return 'unknown (the supervisor was lost)';
  const code = status.signal ? `${status.exitCode} (${status.signal})` : String(status.exitCode);
  const isOwn = [ExitReason.UNSPECIFIED, ExitReason.EXITED, ExitReason.SIGNALED].includes(
    status.reason,
  );
  const reason = ExitReason[status.reason] ?? `reason ${status.reason}`;
  return isOwn ? code : `${code}, ${reason.toLowerCase().replaceAll('_', ' ')}`;
}

function eventsText({ firstSeq, nextSeq }: Terminal): string {
  return nextSeq === firstSeq ? 'none' : `${firstSeq}-${nextSeq - 1n}`;
}

function pauseText(paused: PauseReason | undefined): string | undefined {
  return paused === undefined ? undefined : PauseReason[paused]?.toLowerCase().replaceAll('_', ' ');
}

export function sizeText({ size }: Terminal): string {
  return size ? `${size.columns}x${size.rows}` : '-';
}

/** Quoted so that the words can be told apart; of a session its shell. */
export function commandText(command: readonly string[]): string {
  return shownCommand(command)
    .map((word) => (/^[\w./:=@%+,-]+$/.test(word) ? word : JSON.stringify(word)))
    .join(' ');
}

function timeText(time: Timestamp | undefined): string | undefined {
  return time && timestampDate(time).toISOString();
}
