/** One set of policies, loaded into an instance of Cedar and ready to be asked. */
import { createRequire } from 'node:module';
import { setFlagsFromString } from 'node:v8';
import type * as Cedar from '@cedar-policy/cedar-wasm/nodejs';
import { partsRead, type TerminalPart } from './cedarReach.js';
import type { Question } from './cedarRequest.js';
import type { PolicySet } from './cedarSet.js';

export type CedarInstance = Pick<
  typeof Cedar,
  'preparsePolicySet' | 'statefulIsAuthorized' | 'policyToJson'
>;

export interface Verdict {
  readonly permit: boolean;
  /** Policies that decided, and those that could not be evaluated; sorted. */
  readonly policyIds: readonly string[];
  /** Empty with a permit. */
  readonly errors: readonly EvaluationError[];
}

export interface EvaluationError {
  /** Absent where the question itself was refused. */
  readonly policyId?: string;
  readonly message: string;
}

export interface Engine {
  /** @throws whatever breaks the instance; then it must not be asked again */
  (question: Question): Verdict;
  /** What of a terminal the answers depend on; absent: all. */
  readonly reads?: ReadonlySet<TerminalPart>;
}

/**
 * Calls into WebAssembly that V8 has compiled into their caller end the process of Node.js 20 with
 * `unreachable code` when that caller is dropped while one of Cedar's answers is on its way: V8 then
 * knows no way back for a reference. What the flag costs a decision has not been measured by itself.
 * Bench row `decision` without this line shows the end; so does test/policy/manyDecisions.test.ts.
 */
setFlagsFromString('--no-turbo-inline-js-wasm-calls');

/**
 * A new instance each time, with memory of its own: what a trap has broken stays with the old one.
 * `require` would give the one that it has, and keep it alive.
 */
export function newCedar(): CedarInstance {
  const require = createRequire(import.meta.url);
  const path = require.resolve('@cedar-policy/cedar-wasm/nodejs');
  delete require.cache[path];
  return require(path);
}

/** The set must have been checked. @throws Error when it cannot be loaded all the same */
export function openEngine(set: PolicySet, cedar: CedarInstance = newCedar()): Engine {
  // By id, so that diagnostics name them.
  const staticPolicies = Object.fromEntries(set.policies.map(({ id, text }) => [id, text]));
  const loaded = cedar.preparsePolicySet(set.hash, { staticPolicies });
  if (loaded.type === 'failure') {
    throw new Error(`the policies cannot be loaded: ${loaded.errors[0]?.message}`);
  }
  const ask = (question: Question) =>
    judge(cedar.statefulIsAuthorized({ ...question, preparsedPolicySetId: set.hash }));
  return Object.assign(ask, { reads: partsRead(set, cedar) });
}

/**
 * Cedar leaves out of account what it cannot evaluate, so a forbid that fails would permit
 * (https://docs.cedarpolicy.com/auth/authorization.html): any error is a denial here.
 */
function judge(answer: Cedar.AuthorizationAnswer): Verdict {
  if (answer.type === 'failure') {
    return {
      permit: false,
      policyIds: [],
      errors: answer.errors.map(({ message }) => ({ message })),
    };
  }
  const { decision, diagnostics } = answer.response;
  const { reason, errors } = diagnostics;
  if (errors.length === 0) {
    return { permit: decision === 'allow', policyIds: reason.sort(), errors: [] };
  }
  const failed = errors.map(({ policyId, error }) => ({ policyId, message: error.message }));
  const forbids = decision === 'deny' ? reason : [];
  return {
    permit: false,
    policyIds: [...forbids, ...failed.map(({ policyId }) => policyId)].sort(),
    errors: failed,
  };
}
