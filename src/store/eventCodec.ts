/**
 * One event and its line in events.jsonl. The keys of the specification come first and in its
 * order, then additive ones: `us`; `cols`, `rows`; `instance`; on process.exit also `signal`,
 * `reason`, `survivors`.
 */
import type { ExitEvent, OutputEvent, TerminalEvent } from '../core/event.js';
import { MAX_EVENT_DATA_BYTES } from '../core/limits.js';
import type { Allocate } from './base64.js';
import { parseEventLine, type UnknownEvent } from './eventJson.js';
import { readOutputLine } from './outputLine.js';

/** Bytes of one line at most, its newline included: 64 KiB in base64 and room for added keys. */
export const MAX_LINE_BYTES = 128 * 1024;

export const NEWLINE = 0x0a;

/** The line of an event, its newline included. @throws RangeError for what no reader would accept. */
export function encodeEvent(event: TerminalEvent): Buffer {
  return encodeEvents([event]);
}

/** The lines of several events in one buffer. */
export function encodeEvents(events: readonly TerminalEvent[]): Buffer {
  const lines = events.map((event) => new EventLine(event));
  const bytes = Buffer.allocUnsafe(lines.reduce((sum, line) => sum + line.length, 0));
  let at = 0;
  for (const line of lines) at = line.writeTo(bytes, at);
  return bytes;
}

/** An event's line, checked and measured, to be written where it is wanted: at most MAX_LINE_BYTES. */
export class EventLine {
  /** Bytes, its newline included. */
  readonly length: number;
  readonly #parts: LineParts;

  /** @throws RangeError for what no reader would accept */
  constructor(event: TerminalEvent) {
    this.#parts = event.type === 'pty.output' ? outputParts(event) : exitParts(event);
    const { head, data, tail } = this.#parts;
    this.length = head.length + Math.ceil(data.length / 3) * 4 + tail.length;
  }

  /** Answers where the next line comes. */
  writeTo(bytes: Buffer, start: number): number {
    const { head, data, tail } = this.#parts;
    const dataAt = start + bytes.write(head, start, 'latin1');
    const tailAt = dataAt + bytes.write(data.toString('base64'), dataAt, 'latin1');
    return tailAt + bytes.write(tail, tailAt, 'latin1');
  }
}

/** What stands before and behind the data of a line, each of one-byte characters. */
interface LineParts {
  readonly head: string;
  /** Stands there in base64. */
  readonly data: Buffer;
  readonly tail: string;
}

const NO_DATA = Buffer.alloc(0);

function outputParts(event: OutputEvent): LineParts {
  const { data, size } = event;
  if (data.length === 0 || data.length > MAX_EVENT_DATA_BYTES) {
    throw new RangeError(
      `an output event holds 1-${MAX_EVENT_DATA_BYTES} bytes, not ${data.length}`,
    );
  }
  const cells = size === undefined ? '' : `,"cols":${size.cols},"rows":${size.rows}`;
  return {
    head: `${envelope(event)},"data_b64":"`,
    data: Buffer.from(data.buffer, data.byteOffset, data.byteLength),
    tail: `"${micros(event)}${cells}${member('instance', event.instance)}}\n`,
  };
}

function exitParts(event: ExitEvent): LineParts {
  const { exitCode, instance, signal, reason, survivors } = event;
  return {
    head: `${envelope(event)}${member('exit_code', exitCode)}${micros(event)}${member('instance', instance)}`,
    data: NO_DATA,
    tail: `${member('signal', signal)}${member('reason', reason)}${member('survivors', survivors)}}\n`,
  };
}

function envelope({ seq, timeMicros, type }: TerminalEvent): string {
  if (!Number.isSafeInteger(seq) || seq < 1) throw new RangeError(`no sequence number: ${seq}`);
  if (!Number.isSafeInteger(timeMicros) || timeMicros < 0) {
    throw new RangeError(`no time in microseconds: ${timeMicros}`);
  }
  return `{"seq":${seq},"ts":${Math.floor(timeMicros / 1e6)},"type":"${type}"`;
}

function micros({ timeMicros }: TerminalEvent): string {
  const within = timeMicros % 1e6;
  return within === 0 ? '' : `,"us":${within}`;
}

/** Half of a surrogate pair: no character, and not every JSON parser takes the escape of one. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** `,"key":value` in ASCII, or nothing for an absent value. */
function member(key: string, value: string | number | undefined): string {
  if (value === undefined) return '';
  if (typeof value === 'number') return `,"${key}":${value}`;
  if (LONE_SURROGATE.test(value)) throw new RangeError(`${key} is not sound Unicode`);
  const ascii = JSON.stringify(value).replace(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return `,"${key}":${ascii}`;
}

/**
 * The event of one line, with or without its newline.
 * @throws SyntaxError for an unsound line or an unknown type
 */
export function decodeEvent(line: Uint8Array): TerminalEvent {
  const bytes = Buffer.from(line.buffer, line.byteOffset, line.byteLength);
  const end = bytes.at(-1) === NEWLINE ? bytes.length - 1 : bytes.length;
  const event = decodeLine(bytes, 0, end);
  if (event.type === 'unknown') throw new SyntaxError('the type of the event is not known');
  return event;
}

/**
 * The event in `bytes` from `start` to `end`, without a newline: read quickly where it is an output
 * in our own form; whatever differs goes to the JSON parser, which decides. `allocate` gives the place
 * of an output's data; by default memory of its own.
 * @throws SyntaxError
 */
export function decodeLine(
  bytes: Buffer,
  start: number,
  end: number,
  allocate?: Allocate,
): TerminalEvent | UnknownEvent {
  return (
    readOutputLine(bytes, start, end, allocate) ??
    parseEventLine(bytes.subarray(start, end), allocate)
  );
}
