/** Terminals as rows that people read, one table over several printings. */
import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import type { Terminal, TerminalRef } from '../gen/public/grantty/v1/terminal_pb.js';
import { commandText, exitText, sizeText, stateName } from './record.js';
import { Columns } from './table.js';

/** Rows that come later may be in any state. */
const WIDEST_STATE = ['', '', '', '', 'running'];

const HEAD = ['ID', 'OWNER', 'AGENT', 'SESSION', 'STATE', 'EXIT', 'SIZE', 'AGE', 'COMMAND'];

export class TerminalTable {
  readonly #columns = new Columns(HEAD);

  /** With the head above them. */
  rows(terminals: readonly Terminal[], now: Date): string {
    const rows = terminals.map((terminal) => cells(terminal, now));
    this.#columns.fit([WIDEST_STATE, ...rows]);
    return [HEAD, ...rows].map((row) => this.#columns.line(row)).join('\n');
  }

  /** One that is new or has changed, below those that were printed before. */
  row(terminal: Terminal, now: Date): string {
    return this.#columns.line(cells(terminal, now));
  }

  removed(ref: TerminalRef | undefined): string {
    return this.#columns.line([ref?.id ?? '', ref?.owner ?? '', '', '', 'removed']);
  }
}

function cells(terminal: Terminal, now: Date): string[] {
  return [
    terminal.ref?.id ?? '',
    terminal.ref?.owner ?? '',
    terminal.agent,
    terminal.session,
    stateName(terminal.state),
    exitText(terminal.exitStatus) ?? '-',
    sizeText(terminal),
    ageText(terminal.createdAt, now),
    commandOf(terminal),
  ];
}

/** Of a session its shell, and its name where it has one. */
function commandOf({ command, name }: Terminal): string {
  const text = commandText(command);
  return name === '' ? text : `${text} (${name})`;
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
