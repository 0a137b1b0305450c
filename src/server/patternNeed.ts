/** What a text must hold for a pattern to match in it: looked for first, as that is much quicker. */
import type { RE2JS } from 're2js';
import { Literal } from './literal.js';

/**
 * Whether `text` holds what is needed. It grows at its end and is cut at its beginning, and begins at
 * byte `offset` of all that there has been: what was looked through before is not looked through again.
 */
export type Need = (text: Buffer, offset: number) => boolean;

/** Alternatives above which one pass of the engine is quicker than a search for each. */
const MAX_ALTERNATIVES = 16;

/** The kinds of the engine's own prefilter (re2js, `Prefilter.Type`), which stands there untyped. */
const EXACT = 1;
const ALL_OF = 2;
const ANY_OF = 3;

interface Prefilter {
  readonly type: number;
  readonly bytes: readonly number[] | null;
  readonly subs: readonly Prefilter[];
}

/** What the engine itself demands before it matches; undefined when nothing is known to be needed. */
export function needOf(pattern: RE2JS): Need | undefined {
  const prefilter: Prefilter | null = pattern.re2().prefilter;
  return prefilter === null ? undefined : need(prefilter);
}

function need({ type, bytes, subs }: Prefilter): Need | undefined {
  if (type === EXACT && bytes !== null) return holds(new Literal(Uint8Array.from(bytes)));
  const needs = subs.map(need).filter((sub) => sub !== undefined);
  if (type === ALL_OF) return (text, offset) => needs.every((isMet) => isMet(text, offset));
  if (type !== ANY_OF || needs.length < subs.length || needs.length > MAX_ALTERNATIVES) {
    return undefined;
  }
  return (text, offset) => needs.some((isMet) => isMet(text, offset));
}

function holds(literal: Literal): Need {
  /** Where it was found last, and from where on it has not been looked for. */
  let found = -1;
  let fresh = 0;
  return (text, offset) => {
    if (found >= offset) return true;
    const from = Math.max(fresh - offset, 0);
    const at = literal.indexIn(text, from);
    if (at >= 0) {
      found = offset + at;
      fresh = found + 1;
    } else {
      fresh = offset + Math.max(text.length - literal.length + 1, from);
    }
    return at >= 0;
  };
}
