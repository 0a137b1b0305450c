/** A terminal's record as people read it. */
import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import {
  type ExitStatus,
  OnExit,
  PauseReason,
  type Terminal,
  TerminalState,
} from '../gen/public/grantty/v1/terminal_pb.js';
import { formatRecord, formatTable } from './table.js';

export function terminalTable(terminals: readonly Terminal[], now: Date): string {
  return formatTable(
    ['ID', 'OWNER', 'AGENT', 'SESSION', 'STATE', 'EXIT', 'SIZE', 'AGE', 'COMMAND'],
    terminals.map((terminal) => [
      terminal.ref?.id ?? '',
      terminal.ref?.owner ?? '',
      terminal.agent,
      terminal.session,
      stateName(terminal.state),
      exitText(terminal.exitStatus) ?? '-',
      sizeText(terminal),
      ageText(terminal.createdAt, now),
      commandText(terminal.command),
    ]),
  );
}

export function terminalRecord(terminal: Terminal): string {
  const labels = Object.entries(terminal.labels).map(([key, value]) => `${key}=${value}`);
  const attachments = terminal.attachments.map(({ subject, actor }) => actor || subject);
  return formatRecord([
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
    ['on exit', OnExit[terminal.onExit]?.toLowerCase()],
    ['created', timeText(terminal.createdAt)],
    ['updated', timeText(terminal.updatedAt)],
    ['exited', timeText(terminal.exitedAt)],
    ['created by', terminal.createdBy?.subject],
    ['attached', attachments.join(', ')],
    ['paused', pauseText(terminal.paused)],
    ['socket', terminal.socket],
  ]);
}

export function stateName(state: TerminalState): string {
  return TerminalState[state]?.toLowerCase() ?? String(state);
}

/** `0`, `143 (SIGTERM)`, or why there is no code. */
export function exitText(status: ExitStatus | undefined): string | undefined {
  if (status === undefined) return undefined;
  if (status.exitCode === undefined) return 'unknown (the supervisor was lost)';
  return status.signal ? `${status.exitCode} (${status.signal})` : String(status.exitCode);
}

function eventsText({ firstSeq, nextSeq }: Terminal): string {
  return nextSeq === firstSeq ? 'none' : `${firstSeq}-${nextSeq - 1n}`;
}

function pauseText(paused: PauseReason | undefined): string | undefined {
  return paused === undefined ? undefined : PauseReason[paused]?.toLowerCase().replaceAll('_', ' ');
}

function sizeText({ size }: Terminal): string {
  return size ? `${size.columns}x${size.rows}` : '-';
}

/** Quoted so that the words can be told apart. */
function commandText(command: readonly string[]): string {
  return command
    .map((word) => (/^[\w./:=@%+,-]+$/.test(word) ? word : JSON.stringify(word)))
    .join(' ');
}

function timeText(time: Timestamp | undefined): string | undefined {
  return time && timestampDate(time).toISOString();
}

/** The two greatest units are enough: `3d4h`, `12s`. */
function ageText(time: Timestamp | undefined, now: Date): string {
  if (time === undefined) return '-';
  const seconds = Math.max(0, Math.floor((now.getTime() - timestampDate(time).getTime()) / 1000));
  const days = Math.floor(seconds / 86_400);
  const hours = Math.floor(seconds / 3_600) % 24;
  const minutes = Math.floor(seconds / 60) % 60;
  if (days > 0) return `${days}d${hours}h`;
  if (hours > 0) return `${hours}h${minutes}m`;
  return minutes > 0 ? `${minutes}m${seconds % 60}s` : `${seconds}s`;
}
