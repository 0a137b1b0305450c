/** Values of the command line: sizes, durations, pairs, signals, sequence numbers. */
import { SIZE_RANGE } from '../core/limits.js';
import { UsageError } from './exitCode.js';

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** `80x24`, columns first. */
export function parseSize(text: string): Size {
  const [, columns, rows] = /^(\d{1,4})x(\d{1,4})$/i.exec(text) ?? [];
  const size = { columns: Number(columns), rows: Number(rows) };
  const { min, max } = SIZE_RANGE;
  if ([size.columns, size.rows].every((cells) => cells >= min && cells <= max)) return size;
  throw new UsageError(
    `"${text}" is not a size: write COLUMNSxROWS, each ${min} to ${max}, like 80x24`,
  );
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** `500ms`, `5s`, `1.5m`, `2h`; a bare number is seconds. In milliseconds. */
export function parseDuration(text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text) ?? [];
  const factor = UNIT_MS[unit ?? 's'];
  if (number === undefined || factor === undefined) {
    throw new UsageError(
      `"${text}" is not a duration: write a number with ms, s, m or h, like 30s`,
    );
  }
  return Math.round(Number(number) * factor);
}

/** `KEY=VALUE`, each key once; the value may hold anything. */
export function parsePairs(option: string, pairs: readonly string[] = []): Record<string, string> {
  const result: Record<string, string> = {};
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    if (at < 1) throw new UsageError(`${option} "${pair}": write KEY=VALUE`);
    const key = pair.slice(0, at);
    // The protobuf runtime keeps maps in plain objects, where this key is not kept.
    if (key === '__proto__') throw new UsageError(`${option} "${key}": the key is reserved`);
    if (Object.hasOwn(result, key)) throw new UsageError(`${option} "${key}" is given twice`);
    result[key] = pair.slice(at + 1);
  }
  return result;
}

/** A whole number from 0 that a uint64 holds. */
export function parseCount(option: string, text: string): bigint {
  if (/^\d{1,19}$/.test(text)) return BigInt(text);
  throw new UsageError(`${option} "${text}": write a whole number`);
}

/** A whole number from 0 that a uint32 holds. */
export function parseUint32(option: string, text: string): number {
  const number = Number(parseCount(option, text));
  if (number <= 0xffff_ffff) return number;
  throw new UsageError(`${option} "${text}": is too large`);
}

/** commander's collector of an option that may be given several times. */
export function collect(value: string, previous: readonly string[] = []): string[] {
  return [...previous, value];
}
