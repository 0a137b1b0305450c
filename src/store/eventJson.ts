/** The strict reading of any JSON form of an event: what the quick reading of eventCodec.ts leaves. */
import type { ExitEvent, OutputEvent, TerminalEvent } from '../core/event.js';
import { MAX_EVENT_DATA_BYTES, SIZE_RANGE } from '../core/limits.js';
import { parseStrictJson } from '../core/strictJson.js';
import { type Allocate, decodeBase64 } from './base64.js';

/** An event of a type that this version does not know: it holds its seq, and readers pass over it. */
export interface UnknownEvent {
  readonly type: 'unknown';
  readonly seq: number;
  readonly timeMicros: number;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Any order of keys and any JSON spelling; keys that are not known are passed over. @throws SyntaxError */
export function parseEventLine(
  line: Uint8Array,
  allocate?: Allocate,
): TerminalEvent | UnknownEvent {
  const members = parseObject(line);
  const seq = integer(members, 'seq', 1);
  const ts = integer(members, 'ts', 0);
  const timeMicros = ts * 1e6 + (optionalInteger(members, 'us', 0, 999_999) ?? 0);
  if (!Number.isSafeInteger(timeMicros)) throw unsound('ts', 'is out of range');
  switch (members.type) {
    case 'pty.output':
      return output(members, seq, timeMicros, allocate);
    case 'process.exit':
      return exit(members, seq, timeMicros);
    default:
      if (typeof members.type !== 'string') throw unsound('type', 'must be a string');
      return { type: 'unknown', seq, timeMicros };
  }
}

type Members = Readonly<Record<string, unknown>>;

function parseObject(line: Uint8Array): Members {
  let value: unknown;
  try {
    value = parseStrictJson(utf8.decode(line));
  } catch (error) {
    throw new SyntaxError('the event is not JSON in UTF-8', { cause: error });
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new SyntaxError('the event is not a JSON object');
  }
  return Object.fromEntries(Object.entries(value));
}

function output(
  members: Members,
  seq: number,
  timeMicros: number,
  allocate: Allocate | undefined,
): OutputEvent {
  const base64 = text(members, 'data_b64');
  const bytes = Buffer.from(base64 ?? '', 'utf8');
  const data = decodeBase64(bytes, 0, bytes.length, MAX_EVENT_DATA_BYTES, allocate);
  if (data === undefined)
    throw unsound('data_b64', `must be 1-${MAX_EVENT_DATA_BYTES} bytes in standard base64`);
  const cols = optionalInteger(members, 'cols', SIZE_RANGE.min, SIZE_RANGE.max);
  const rows = optionalInteger(members, 'rows', SIZE_RANGE.min, SIZE_RANGE.max);
  if ((cols === undefined) !== (rows === undefined)) throw unsound('cols', 'goes with rows');
  const instance = optionalInteger(members, 'instance', 1);
  return {
    type: 'pty.output',
    seq,
    timeMicros,
    data,
    ...(cols === undefined || rows === undefined ? {} : { size: { cols, rows } }),
    ...(instance === undefined ? {} : { instance }),
  };
}

function exit(members: Members, seq: number, timeMicros: number): ExitEvent {
  const exitCode = optionalInteger(members, 'exit_code', 0, 255);
  const instance = optionalInteger(members, 'instance', 1);
  const signal = text(members, 'signal');
  const reason = text(members, 'reason');
  const survivors = optionalInteger(members, 'survivors', 0);
  return {
    type: 'process.exit',
    seq,
    timeMicros,
    ...(exitCode === undefined ? {} : { exitCode }),
    ...(instance === undefined ? {} : { instance }),
    ...(signal === undefined ? {} : { signal }),
    ...(reason === undefined ? {} : { reason }),
    ...(survivors === undefined ? {} : { survivors }),
  };
}

function integer(members: Members, key: string, min: number): number {
  const value = optionalInteger(members, key, min);
  if (value === undefined) throw unsound(key, 'is missing');
  return value;
}

function optionalInteger(
  members: Members,
  key: string,
  min: number,
  max = Number.MAX_SAFE_INTEGER,
): number | undefined {
  const value = members[key];
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) {
    return value;
  }
  throw unsound(key, `must be an integer from ${min} to ${max}`);
}

function text(members: Members, key: string): string | undefined {
  const value = members[key];
  if (value === undefined || typeof value === 'string') return value;
  throw unsound(key, 'must be a string');
}

function unsound(key: string, what: string): SyntaxError {
  return new SyntaxError(`"${key}" of the event ${what}`);
}
