/** Policies as the trail keeps them, made able to decide again. */
import type { ArchivedPolicy, Judge } from '../audit/whoCould.js';
import { CedarPolicy } from '../auth/cedarPolicy.js';
import { makePolicySet } from '../auth/cedarSet.js';

/** @throws Error when the text is not the one that the hash stands for */
export function openArchivedPolicy({ hash, text }: ArchivedPolicy): Judge {
  const [schema, policies]: [string, [string, string][]] = JSON.parse(text);
  const set = makePolicySet(
    schema,
    policies.map(([id, source]) => ({ id, effect: effectOf(source), text: source })),
  );
  if (set.hash !== hash) throw new Error(`the policies on record are not those of hash ${hash}`);
  const policy = new CedarPolicy(set);
  return (asked) => policy.decide(asked);
}

/** The first word after the annotations, whose values are quoted. */
function effectOf(source: string): 'permit' | 'forbid' {
  return /^(?:\s|\/\/.*|@\w+(?:\s*\(\s*"(?:[^"\\]|\\.)*"\s*\))?)*forbid\b/.test(source)
    ? 'forbid'
    : 'permit';
}
