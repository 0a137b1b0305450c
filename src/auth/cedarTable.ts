/** Table tests of policies: requests, and what is to be decided on them by which policies. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { type CedarInstance, newCedar, openEngine } from './cedarEngine.js';
import { CedarPolicy } from './cedarPolicy.js';
import { makePolicySet, type PolicySet } from './cedarSet.js';
import type { PolicyRequest } from './policy.js';
import { parseWith, policyRequestSchema } from './policyRequestJson.js';

export interface TableCase {
  /** A sentence. */
  readonly name: string;
  readonly file: string;
  readonly request: PolicyRequest;
  readonly decision: 'permit' | 'deny';
  /** Ids of all policies that decide, in any order; none where nothing permits. */
  readonly policies: readonly string[];
}

export interface CaseFailure {
  readonly case: TableCase;
  /** What was decided instead. */
  readonly decision: 'permit' | 'deny';
  readonly policies: readonly string[];
  readonly errors: readonly string[];
}

const table = z.strictObject({
  cases: z
    .array(
      z.strictObject({
        name: z.string().min(1),
        request: policyRequestSchema,
        decision: z.enum(['permit', 'deny']),
        policies: z.array(z.string()),
      }),
    )
    .min(1),
});

/** Reads `tests/*.json` of a policy directory. @throws Error that names the file and what is wrong */
export async function readTables(policyDir: string): Promise<readonly TableCase[]> {
  const dir = join(policyDir, 'tests');
  const names = (await readdir(dir)).filter((name) => name.endsWith('.json')).sort();
  const cases: TableCase[] = [];
  for (const file of names) {
    try {
      const document: unknown = JSON.parse(await readFile(join(dir, file), 'utf8'));
      cases.push(...parseWith(table, document).cases.map((one) => ({ ...one, file })));
    } catch (error) {
      throw new Error(`${join(dir, file)}: ${error instanceof Error ? error.message : error}`);
    }
  }
  return cases;
}

/** The cases that come out otherwise than they should. */
export function failuresOf(
  set: PolicySet,
  cases: readonly TableCase[],
  cedar: CedarInstance = newCedar(),
): readonly CaseFailure[] {
  const policy = new CedarPolicy(set, { open: (one) => openEngine(one, cedar) });
  return cases.flatMap((one) => {
    const { permit, policyIds, errors } = policy.explain(one.request);
    const decision = permit ? 'permit' : 'deny';
    const isRight =
      decision === one.decision &&
      errors.length === 0 &&
      sorted(policyIds) === sorted(one.policies);
    if (isRight) return [];
    return [
      { case: one, decision, policies: policyIds, errors: errors.map(({ message }) => message) },
    ];
  });
}

/**
 * Forbids that could be taken out without any case noticing. A guardrail that no test misses is one
 * that can be lost.
 */
export function unguardedForbids(set: PolicySet, cases: readonly TableCase[]): readonly string[] {
  const cedar = newCedar();
  return set.policies
    .filter(({ effect }) => effect === 'forbid')
    .map(({ id }) => id)
    .filter((lost) => {
      const rest = set.policies.filter(({ id }) => id !== lost);
      return failuresOf(makePolicySet(set.schema, rest), cases, cedar).length === 0;
    });
}

function sorted(ids: readonly string[]): string {
  return [...ids].sort().join();
}
