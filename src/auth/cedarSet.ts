/** A set of policies that has been validated, and the hash that names it in every decision. */
import { createHash } from 'node:crypto';

export interface PolicyText {
  /** Its `@id`, unique in the set. */
  readonly id: string;
  readonly effect: 'permit' | 'forbid';
  /** As written, from its first annotation to its semicolon. */
  readonly text: string;
}

export interface PolicySet {
  /** What the policies were validated against. */
  readonly schema: string;
  /** Sorted by id. */
  readonly policies: readonly PolicyText[];
  /**
   * All that answers depend on, in one text: the JSON of `[schema, [[id, text], ...]]`, the policies
   * sorted by id, without white space. Whoever keeps it can show what a hash stood for.
   */
  readonly canonical: string;
  /** SHA-256 of `canonical` in UTF-8, hex. */
  readonly hash: string;
}

export function makePolicySet(schema: string, policies: readonly PolicyText[]): PolicySet {
  const sorted = [...policies].sort((a, b) => (a.id < b.id ? -1 : 1));
  const canonical = JSON.stringify([schema, sorted.map(({ id, text }) => [id, text])]);
  const hash = createHash('sha256').update(canonical).digest('hex');
  return { schema, policies: sorted, canonical, hash };
}
