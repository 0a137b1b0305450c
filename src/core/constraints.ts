/** Constraints of a grant: how they are written, and the one full form they are compared in. */
import { normalDirectory } from './directory.js';
import { isEnvPattern } from './envNames.js';
import { fieldInvalid } from './errors.js';
import { asArray, asInteger, asObjectOf } from './jsonShape.js';
import { MAX_ARGV_COUNT } from './limits.js';
import { isSignalName, type SignalName } from './signals.js';

/**
 * The normalised form: every key is there. Undefined allows everything, an empty list nothing.
 * Lists are sorted and hold nothing twice, so that equal constraints are equal data.
 */
export interface Constraints {
  /** Seconds since the Unix epoch; from then on the grant covers nothing. */
  readonly expiresAt: number | undefined;
  /** Terminals that live at one time of those created under the grant; 0 allows none. */
  readonly maxTerminals: number | undefined;
  /** Full argvs, each compared element by element. */
  readonly commands: readonly (readonly string[])[] | undefined;
  /** Absolute, without empty, `.` or `..` segments, without a slash at the end (but for `/`). */
  readonly cwdUnder: readonly string[] | undefined;
  /** Names and `prefix*` patterns of variables. Not written means empty. */
  readonly envAllow: readonly string[];
  readonly signals: readonly SignalName[] | undefined;
  /** Not written means `refuse`. */
  readonly signalBytes: 'allow' | 'refuse';
  /** Input bytes a second over all terminals, 1 at least. */
  readonly writeBytesPerSecond: number | undefined;
}

/** The constraints by the names that tokens give them. */
export const constraintNames = [
  'expires_at',
  'max_terminals',
  'commands',
  'cwd_under',
  'env_allow',
  'signals',
  'signal_bytes',
  'write_bytes_per_second',
] as const;

export type ConstraintName = (typeof constraintNames)[number];

/**
 * Reads the `constraints` object of a grant, undefined when it has none.
 * @throws FIELD_INVALID that names the path, never the value
 */
export function parseConstraints(field: string, value: unknown): Constraints {
  const written = value === undefined ? {} : asObjectOf(field, value, constraintNames);
  const read = <T>(name: ConstraintName, parse: (field: string, value: unknown) => T) =>
    Object.hasOwn(written, name) ? parse(`${field}.${name}`, written[name]) : undefined;
  return {
    expiresAt: read('expires_at', (path, seconds) => asInteger(path, seconds, 0)),
    maxTerminals: read('max_terminals', (path, count) => asInteger(path, count, 0)),
    commands: read('commands', listOf(parseArgv)),
    cwdUnder: read('cwd_under', listOf(parseDirectory)),
    envAllow: read('env_allow', listOf(parseEnvPattern)) ?? [],
    signals: read('signals', listOf(parseSignal)),
    signalBytes: read('signal_bytes', parseSignalBytes) ?? 'refuse',
    writeBytesPerSecond: read('write_bytes_per_second', (path, rate) => asInteger(path, rate, 1)),
  };
}

/** The constraints as tokens write them; what allows everything is left out. */
export function writeConstraints(
  constraints: Constraints,
): Partial<Record<ConstraintName, unknown>> {
  const written: Record<ConstraintName, unknown> = {
    expires_at: constraints.expiresAt,
    max_terminals: constraints.maxTerminals,
    commands: constraints.commands,
    cwd_under: constraints.cwdUnder,
    env_allow: constraints.envAllow,
    signals: constraints.signals,
    signal_bytes: constraints.signalBytes,
    write_bytes_per_second: constraints.writeBytesPerSecond,
  };
  return Object.fromEntries(Object.entries(written).filter(([, value]) => value !== undefined));
}

function listOf<T>(parse: (field: string, value: unknown) => T) {
  return (field: string, value: unknown): readonly T[] => {
    const byText = new Map<string, T>();
    asArray(field, value).forEach((item, index) => {
      const parsed = parse(`${field}[${index}]`, item);
      byText.set(JSON.stringify(parsed), parsed);
    });
    return [...byText.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, item]) => item);
  };
}

function parseArgv(field: string, value: unknown): readonly string[] {
  const argv = asArray(field, value).map((argument, index) => {
    if (typeof argument === 'string' && !argument.includes('\0')) return argument;
    throw fieldInvalid(`${field}[${index}]`, 'must be a string without NUL');
  });
  if (argv[0]?.startsWith('/') && argv.length <= MAX_ARGV_COUNT) return argv;
  throw fieldInvalid(
    field,
    `must be a full argv of 1-${MAX_ARGV_COUNT} elements, the first an absolute path`,
  );
}

function parseDirectory(field: string, value: unknown): string {
  const directory = typeof value === 'string' ? normalDirectory(value) : undefined;
  if (directory !== undefined) return directory;
  throw fieldInvalid(field, 'must be an absolute path without ".." segments');
}

function parseEnvPattern(field: string, value: unknown): string {
  if (typeof value === 'string' && isEnvPattern(value)) return value;
  throw fieldInvalid(field, 'must be a name of a variable, a prefix followed by "*", or "*"');
}

function parseSignal(field: string, value: unknown): SignalName {
  if (typeof value === 'string' && isSignalName(value)) return value;
  throw fieldInvalid(field, 'must be the full name of a signal, such as SIGINT');
}

function parseSignalBytes(field: string, value: unknown): 'allow' | 'refuse' {
  if (value === 'allow' || value === 'refuse') return value;
  throw fieldInvalid(field, 'must be "allow" or "refuse"');
}
