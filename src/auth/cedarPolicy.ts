/** The operator's policies as Cedar decides on them, with the answers that were given remembered. */
import { LRUCache } from 'lru-cache';
import { type Engine, type EvaluationError, openEngine } from './cedarEngine.js';
import { keyOf, questionsOf } from './cedarRequest.js';
import type { PolicySet } from './cedarSet.js';
import type { Policy, PolicyDecision, PolicyRequest } from './policy.js';

/** Answers that are remembered; above it the one used longest ago is forgotten. */
const MAX_ANSWERS = 16_384;

/** Characters of all their keys, and of one: a question that is longer is asked each time. */
const MAX_KEY_CHARACTERS = 8 * 1024 * 1024;
const MAX_ONE_KEY = 2048;

export interface CedarPolicyOptions {
  /** Told what failed: a policy that could not be evaluated, an instance that broke. */
  readonly onFailure?: (failure: PolicyFailure) => void;
  /** For tests. */
  readonly open?: (set: PolicySet) => Engine;
}

export type PolicyFailure =
  | { readonly kind: 'evaluation'; readonly errors: readonly EvaluationError[] }
  | { readonly kind: 'instance'; readonly err: unknown };

export interface Explanation extends PolicyDecision {
  readonly errors: readonly EvaluationError[];
}

export class CedarPolicy implements Policy {
  readonly #options: CedarPolicyOptions;
  readonly #open: (set: PolicySet) => Engine;
  readonly #answers = new LRUCache<string, PolicyDecision>({
    max: MAX_ANSWERS,
    maxSize: MAX_KEY_CHARACTERS,
    maxEntrySize: MAX_ONE_KEY,
    sizeCalculation: (_, key) => key.length,
  });
  #set: PolicySet;
  /** Absent after one broke and could not be replaced: then all that is not remembered is denied. */
  #engine: Engine | undefined;
  /** What of a terminal the set looks at. */
  #reads: Engine['reads'];

  /** The set must have been checked. @throws Error when it cannot be loaded */
  constructor(set: PolicySet, options: CedarPolicyOptions = {}) {
    this.#options = options;
    this.#open = options.open ?? openEngine;
    this.#engine = this.#open(set);
    this.#reads = this.#engine.reads;
    this.#set = set;
  }

  get set(): PolicySet {
    return this.#set;
  }

  get hash(): string {
    return this.#set.hash;
  }

  /** From one decision to the next; nothing of the old set is left. @throws, and the old one stays */
  swap(set: PolicySet): void {
    this.#engine = this.#open(set);
    this.#reads = this.#engine.reads;
    this.#set = set;
    this.#answers.clear();
  }

  decide(request: PolicyRequest): PolicyDecision {
    const key = keyOf(request, this.#reads);
    const known = this.#answers.get(key);
    if (known !== undefined) return known;
    try {
      const { permit, policyIds, hash, errors } = this.explain(request);
      if (errors.length > 0) this.#options.onFailure?.({ kind: 'evaluation', errors });
      const decision = { permit, policyIds, hash };
      this.#answers.set(key, decision);
      return decision;
    } catch (error) {
      this.#options.onFailure?.({ kind: 'instance', err: error });
      this.#replace();
      return { permit: false, policyIds: [], hash: this.hash };
    }
  }

  /** Asks afresh and says what went wrong. @throws when the instance breaks */
  explain(request: PolicyRequest): Explanation {
    const { hash } = this;
    const engine = this.#engine;
    if (engine === undefined) throw new Error('no instance of the policy engine could be opened');
    const policyIds = new Set<string>();
    for (const question of questionsOf(request)) {
      const verdict = engine(question);
      if (!verdict.permit) return { ...verdict, hash };
      for (const id of verdict.policyIds) policyIds.add(id);
    }
    return { permit: true, policyIds: [...policyIds], hash, errors: [] };
  }

  #replace(): void {
    this.#engine = undefined;
    try {
      this.#engine = this.#open(this.#set);
    } catch (error) {
      this.#options.onFailure?.({ kind: 'instance', err: error });
    }
  }
}
