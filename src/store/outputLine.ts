/** The quick reading of an output's line in the very form that we write: byte by byte, no JSON parser. */
import type { OutputEvent } from '../core/event.js';
import { MAX_EVENT_DATA_BYTES, SIZE_RANGE } from '../core/limits.js';
import { type Allocate, decodeBase64 } from './base64.js';

const ZERO = 0x30;
const NINE = 0x39;
const QUOTE = 0x22;
const CLOSING_BRACE = 0x7d;

const SEQ_KEY = Buffer.from('{"seq":');
const TS_KEY = Buffer.from(',"ts":');
const DATA_KEY = Buffer.from(',"type":"pty.output","data_b64":"');
const US_KEY = Buffer.from(',"us":');
const COLS_KEY = Buffer.from(',"cols":');
const ROWS_KEY = Buffer.from(',"rows":');
const INSTANCE_KEY = Buffer.from(',"instance":');

/**
 * The output in `bytes` from `start` to `end`. Undefined: not in the common form, which says
 * nothing about whether the line is sound.
 */
export function readOutputLine(
  bytes: Buffer,
  start: number,
  end: number,
  allocate?: Allocate,
): OutputEvent | undefined {
  const seqAt = afterKey(bytes, start, end, SEQ_KEY);
  const seqEnd = afterDigits(bytes, seqAt, end);
  const tsAt = afterKey(bytes, seqEnd, end, TS_KEY);
  const tsEnd = afterDigits(bytes, tsAt, end);
  const dataAt = afterKey(bytes, tsEnd, end, DATA_KEY);
  if (dataAt < 0) return undefined;
  const dataEnd = bytes.indexOf(QUOTE, dataAt);
  if (dataEnd < 0 || dataEnd >= end) return undefined;
  const data = decodeBase64(bytes, dataAt, dataEnd, MAX_EVENT_DATA_BYTES, allocate);
  if (data === undefined) return undefined;

  let at = dataEnd + 1;
  let us = 0;
  let size: OutputEvent['size'];
  let instance: number | undefined;
  const usAt = afterKey(bytes, at, end, US_KEY);
  if (usAt >= 0) {
    at = afterDigits(bytes, usAt, end);
    us = numberAt(bytes, usAt, at);
  }
  const colsAt = afterKey(bytes, at, end, COLS_KEY);
  if (colsAt >= 0) {
    const colsEnd = afterDigits(bytes, colsAt, end);
    const rowsAt = afterKey(bytes, colsEnd, end, ROWS_KEY);
    at = afterDigits(bytes, rowsAt, end);
    size = { cols: numberAt(bytes, colsAt, colsEnd), rows: numberAt(bytes, rowsAt, at) };
    if (!isCells(size.cols) || !isCells(size.rows)) return undefined;
  }
  const instanceAt = afterKey(bytes, at, end, INSTANCE_KEY);
  if (instanceAt >= 0) {
    at = afterDigits(bytes, instanceAt, end);
    instance = numberAt(bytes, instanceAt, at);
    if (!(instance >= 1)) return undefined;
  }
  if (at !== end - 1 || bytes[at] !== CLOSING_BRACE) return undefined;

  const seq = numberAt(bytes, seqAt, seqEnd);
  const timeMicros = numberAt(bytes, tsAt, tsEnd) * 1e6 + us;
  if (!(seq >= 1) || !(us <= 999_999) || !Number.isSafeInteger(timeMicros)) return undefined;
  if (size === undefined && instance === undefined) {
    return { type: 'pty.output', seq, timeMicros, data };
  }
  return {
    type: 'pty.output',
    seq,
    timeMicros,
    data,
    ...(size && { size }),
    ...(instance !== undefined && { instance }),
  };
}

/** The seq that a line begins with, or undefined when it does not begin as ours do. */
export function leadingSeq(bytes: Buffer, start: number, end: number): number | undefined {
  const at = afterKey(bytes, start, end, SEQ_KEY);
  const after = afterDigits(bytes, at, end);
  // Digits up to the end of what was read may go on behind it.
  if (after < 0 || after === end) return undefined;
  const seq = numberAt(bytes, at, after);
  return seq >= 1 ? seq : undefined;
}

/** Where `key` ends when it stands at `at`, else -1. A negative `at` is passed on. */
function afterKey(bytes: Buffer, at: number, end: number, key: Buffer): number {
  if (at < 0 || at + key.length > end) return -1;
  for (let i = 0; i < key.length; i++) {
    if (bytes[at + i] !== key[i]) return -1;
  }
  return at + key.length;
}

/** Where the JSON integer at `at` ends: no sign, no leading zero, at most 16 digits; else -1. */
function afterDigits(bytes: Buffer, at: number, end: number): number {
  if (at < 0) return -1;
  let to = at;
  while (to < end && isDigit(bytes[to])) to++;
  const digits = to - at;
  if (digits === 0 || digits > 16 || (digits > 1 && bytes[at] === ZERO)) return -1;
  return to;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE;
}

/** NaN where there is no safe integer. */
function numberAt(bytes: Buffer, at: number, end: number): number {
  if (at < 0 || end < 0) return Number.NaN;
  let value = 0;
  for (let i = at; i < end; i++) value = value * 10 + ((bytes[i] ?? 0) - ZERO);
  return Number.isSafeInteger(value) ? value : Number.NaN;
}

function isCells(value: number): boolean {
  return value >= SIZE_RANGE.min && value <= SIZE_RANGE.max;
}
