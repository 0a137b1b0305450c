/** Checks of parsed JSON: exact members and types, with errors that name the path and no value. */
import { fieldInvalid } from './errors.js';

export type JsonObject = Readonly<Record<string, unknown>>;

export function asObject(field: string, value: unknown): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as JsonObject;
  }
  throw fieldInvalid(field, 'must be an object');
}

/** An object whose members all are among `members`. Which of them must be there is not checked. */
export function asObjectOf(field: string, value: unknown, members: readonly string[]): JsonObject {
  const object = asObject(field, value);
  if (Object.keys(object).every((key) => members.includes(key))) return object;
  throw fieldInvalid(field, `has an unknown member; known are ${members.join(', ')}`);
}

export function asArray(field: string, value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw fieldInvalid(field, 'must be an array');
}

/**
 * Text that is not empty and reads the same everywhere: no control character, and no half of a
 * surrogate pair, of which UTF-8 would make one and the same replacement character.
 */
export function asText(field: string, value: unknown, maxLength: number): string {
  if (typeof value !== 'string') throw fieldInvalid(field, 'must be a string');
  if (value === '') throw fieldInvalid(field, 'must not be empty');
  if (value.length > maxLength)
    throw fieldInvalid(field, `must not exceed ${maxLength} characters`);
  if (/[\p{Cc}\p{Cs}]/u.test(value)) {
    throw fieldInvalid(field, 'must hold no control character and no unpaired surrogate');
  }
  return value;
}

/** An integer that JSON numbers carry exactly. */
export function asInteger(field: string, value: unknown, min: number): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) {
    throw fieldInvalid(field, 'must be an integer');
  }
  if (value < min) throw fieldInvalid(field, `must be at least ${min}`);
  return value;
}
