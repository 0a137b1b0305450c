/** Names of owners, agents, sessions and terminals: the only strings a path is ever built from. */
import { fieldInvalid } from './errors.js';

/** ASCII, so bytes and characters are the same. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$/;

/** Endings that other tools of the resource tree give a meaning to. */
const RESERVED_ENDINGS = ['.sock', '.d'];

/**
 * A checked name: 1–64 bytes, the first alphanumeric, the rest alphanumeric or `. _ + -`, not
 * ending in `.sock` or `.d`. It can hold no separator, no `..` on its own, no NUL.
 */
export type Name = string & { readonly __brand: 'Name' };

export function isName(text: string): text is Name {
  return NAME.test(text) && !RESERVED_ENDINGS.some((ending) => text.endsWith(ending));
}

/** Checks `text`; `field` is the proto path that the error names. */
export function parseName(field: string, text: string): Name {
  if (isName(text)) return text;
  throw fieldInvalid(
    field,
    'must be 1-64 bytes, start with a letter or digit, hold only letters, digits, ".", "_", "+", "-", and not end in ".sock" or ".d"',
  );
}

/** What identifies a terminal and what authority over it is decided on. */
export interface TerminalTuple {
  readonly owner: Name;
  readonly agent: Name;
  readonly session: Name;
  /** Unique per owner. */
  readonly id: Name;
}

/** The default id of the terminal of an agent's session (specification: `terminal-<agent>-<session>`). */
export function defaultTerminalId(agent: Name, session: Name): string {
  return `terminal-${agent}-${session}`;
}
