/** Checks of request fields, done after authority; each says which field and what is wrong with it. */
import type { Duration } from '@bufbuild/protobuf/wkt';
import { isEnvName, isFixedEnvName } from '../core/envNames.js';
import { fieldInvalid, GranttyError } from '../core/errors.js';
import type { TerminalSize } from '../core/event.js';
import {
  DEFAULT_STOP_GRACE_MS,
  MAX_ARGV_BYTES,
  MAX_ARGV_COUNT,
  MAX_ENV_BYTES,
  MAX_ENV_COUNT,
  MAX_INPUT_FRAME_BYTES,
  MAX_LABEL_BYTES,
  MAX_LABELS,
  MAX_STOP_GRACE_MS,
  SIZE_RANGE,
} from '../core/limits.js';
import type { TerminalSize as WireSize } from '../gen/public/grantty/v1/terminal_pb.js';
import { inMilliseconds } from './times.js';

/** Bytes of a title and of a display name. */
const MAX_TITLE_BYTES = 256;

export function parseSize(field: string, size: WireSize | undefined): TerminalSize {
  if (size === undefined) throw fieldInvalid(field, 'is required');
  return {
    cols: inSizeRange(`${field}.columns`, size.columns),
    rows: inSizeRange(`${field}.rows`, size.rows),
  };
}

function inSizeRange(field: string, value: number): number {
  if (value >= SIZE_RANGE.min && value <= SIZE_RANGE.max) return value;
  throw fieldInvalid(field, `must be ${SIZE_RANGE.min} to ${SIZE_RANGE.max}`);
}

export function checkInput(data: Uint8Array): void {
  if (data.length >= 1 && data.length <= MAX_INPUT_FRAME_BYTES) return;
  throw fieldInvalid('data', `must have 1 to ${MAX_INPUT_FRAME_BYTES} bytes`);
}

export function checkTitle(field: string, text: string): void {
  if (Buffer.byteLength(text) <= MAX_TITLE_BYTES) return;
  throw fieldInvalid(field, `must have at most ${MAX_TITLE_BYTES} bytes`);
}

export function checkLabels(field: string, labels: Readonly<Record<string, string>>): void {
  const entries = Object.entries(labels);
  if (entries.length > MAX_LABELS)
    throw fieldInvalid(field, `holds more than ${MAX_LABELS} labels`);
  for (const [key, value] of entries) {
    if (key === '') throw fieldInvalid(field, 'a key must not be empty');
    if (Buffer.byteLength(key) + Buffer.byteLength(value) > MAX_LABEL_BYTES) {
      throw fieldInvalid(
        field,
        `a label must have at most ${MAX_LABEL_BYTES} bytes, key and value`,
      );
    }
  }
}

export function checkCommand(command: readonly string[]): void {
  if (command.length > MAX_ARGV_COUNT) {
    throw fieldInvalid('command', `holds more than ${MAX_ARGV_COUNT} arguments`);
  }
  if (command[0] === '') throw fieldInvalid('command', 'must not begin with an empty argument');
  if (command.some(hasNul)) throw fieldInvalid('command', 'holds a NUL byte');
  if (bytesOf(command) > MAX_ARGV_BYTES) {
    throw fieldInvalid('command', `holds more than ${MAX_ARGV_BYTES} bytes`);
  }
}

export function checkCwd(cwd: string): void {
  if (cwd.startsWith('/') && !hasNul(cwd)) return;
  throw new GranttyError('CWD_INVALID', 'cwd: must be an absolute path', {
    violations: [{ field: 'cwd', description: 'must be an absolute path' }],
  });
}

export function checkEnv(env: Readonly<Record<string, string>>): void {
  const entries = Object.entries(env);
  if (entries.length > MAX_ENV_COUNT) {
    throw fieldInvalid('env', `holds more than ${MAX_ENV_COUNT} variables`);
  }
  for (const [name, value] of entries) {
    if (!isEnvName(name)) {
      throw fieldInvalid('env', 'a name is letters, digits and underscore, no digit first');
    }
    if (isFixedEnvName(name)) throw fieldInvalid('env', `${name} is set by the server`);
    if (hasNul(value)) throw fieldInvalid('env', `${name} holds a NUL byte`);
  }
  if (bytesOf(entries.flat()) > MAX_ENV_BYTES) {
    throw fieldInvalid('env', `holds more than ${MAX_ENV_BYTES} bytes`);
  }
}

const REQUEST_ID = /^[ -~]{1,128}$/;

/** Undefined when the caller gave none. */
export function parseRequestId(requestId: string): string | undefined {
  if (requestId === '') return undefined;
  if (REQUEST_ID.test(requestId)) return requestId;
  throw fieldInvalid('request_id', 'must be 1 to 128 printable ASCII characters');
}

/** Milliseconds. */
export function parseGrace(grace: Duration | undefined): number {
  if (grace === undefined) return DEFAULT_STOP_GRACE_MS;
  return inMilliseconds('grace', grace, 0, MAX_STOP_GRACE_MS);
}

/** What an enum field says, refused when it is UNSPECIFIED or a value that this server does not know. */
export function known<T>(field: string, value: T | undefined): T {
  if (value !== undefined) return value;
  throw fieldInvalid(field, 'must be a known value other than UNSPECIFIED');
}

/** A position or count as a number: no log is longer than numbers are exact. */
export function parseCount(field: string, value: bigint): number {
  if (value <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(value);
  throw fieldInvalid(field, 'is beyond any log');
}

function hasNul(text: string): boolean {
  return text.includes('\0');
}

/** With the byte that ends each string in the kernel. */
function bytesOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text) + 1, 0);
}
