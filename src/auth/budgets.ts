/**
 * Budgets of grants: live terminals, and input bytes a second. A budget belongs to a grant of an
 * issuer and a subject, not to a token, so that neither renewal nor a second token refreshes it. What
 * is done under a delegated grant is charged to it and to each that it is a part of.
 */
import { LRUCache } from 'lru-cache';
import type { Grant } from '../core/grant.js';
import type { CreatedBy } from '../core/terminal.js';
import type { VerifiedToken } from './token.js';

/**
 * Whom something is charged to: a root grant, or one that was delegated from it by way of these
 * grants to these actors. Two actors with grants of one id have budgets of their own.
 */
export type BudgetHolder = CreatedBy;

/** One holder's limit. */
export interface Charge {
  readonly holder: BudgetHolder;
  readonly limit: number;
}

/** Whom the use of a grant is charged to in the end: the grant itself. */
export function holderOf(
  { issuer, subject, actors, lineage }: VerifiedToken,
  { id, from = [] }: Grant,
): BudgetHolder {
  return {
    issuer: lineage[0]?.issuer ?? issuer,
    subject,
    grants: [...from.map((above) => above.id), id],
    // The latest stands first in tokens, and last on the way down from the root.
    ...(actors.length > 0 && { actors: actors.toReversed() }),
  };
}

/** Each limit on live terminals that the use of a grant counts against, from the root on. */
export function terminalCharges(token: VerifiedToken, grant: Grant): readonly Charge[] {
  return chargesOf(token, grant, 'maxTerminals');
}

/** The same for input bytes a second. */
export function inputCharges(token: VerifiedToken, grant: Grant): readonly Charge[] {
  return chargesOf(token, grant, 'writeBytesPerSecond');
}

/** Whether what was created by `createdBy` counts against the holder. */
export function isChargedTo(createdBy: CreatedBy, holder: BudgetHolder): boolean {
  const { actors: above = [] } = holder;
  const { actors = [] } = createdBy;
  return (
    createdBy.issuer === holder.issuer &&
    createdBy.subject === holder.subject &&
    holder.grants.every((id, index) => createdBy.grants[index] === id) &&
    above.every((actor, index) => actors[index] === actor)
  );
}

export function holderKey({ issuer, subject, grants, actors = [] }: BudgetHolder): string {
  return JSON.stringify([issuer, subject, grants, actors]);
}

function chargesOf(
  token: VerifiedToken,
  grant: Grant,
  limit: 'maxTerminals' | 'writeBytesPerSecond',
): readonly Charge[] {
  const { from = [], constraints } = grant;
  if (from.length === 0) {
    // Most tokens are not delegated, and most grants have no limit.
    const own = constraints[limit];
    return own === undefined ? [] : [{ holder: holderOf(token, grant), limit: own }];
  }
  const holder = holderOf(token, grant);
  const limits = [...from.map((above) => above[limit]), constraints[limit]];
  return limits.flatMap((value, depth) =>
    value === undefined ? [] : [{ holder: upTo(holder, depth), limit: value }],
  );
}

function upTo({ issuer, subject, grants, actors = [] }: BudgetHolder, depth: number): BudgetHolder {
  return {
    issuer,
    subject,
    grants: grants.slice(0, depth + 1),
    ...(depth > 0 && { actors: actors.slice(0, depth) }),
  };
}

/**
 * Holders whose rate is remembered; above it the one used longest ago is forgotten and starts with
 * a full bucket again.
 */
const MAX_RATES = 65_536;

/**
 * Token buckets (one second deep) of input bytes. A frame passes once the bucket holds its bytes, or
 * is full; a frame larger than the bucket leaves it in debt, which the next ones wait for. So no
 * frame is refused for ever, and the rate holds over time.
 */
export class RateBudgets {
  readonly #clock: () => number;
  readonly #buckets = new LRUCache<string, Bucket>({ max: MAX_RATES });

  /** `clock` is in milliseconds; a step back of it only delays. */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /**
   * Charges the bytes to all, or to none.
   * @returns 0 when they were charged, else the milliseconds after which the same may pass
   */
  take(charges: readonly Charge[], bytes: number): number {
    const buckets = charges.map(({ holder, limit }) => this.#bucket(holderKey(holder), limit));
    const waitMs = Math.max(0, ...buckets.map((bucket) => waitFor(bucket, bytes)));
    if (waitMs === 0) for (const bucket of buckets) bucket.level -= bytes;
    return waitMs;
  }

  /** Filled up to now; `rate` may differ from that of the last time, when the grant was changed. */
  #bucket(key: string, rate: number): Bucket {
    const now = this.#clock();
    const bucket = this.#buckets.get(key) ?? { level: rate, rate, at: now };
    bucket.rate = rate;
    bucket.level = Math.min(rate, bucket.level + (rate * Math.max(0, now - bucket.at)) / 1000);
    bucket.at = now;
    this.#buckets.set(key, bucket);
    return bucket;
  }
}

interface Bucket {
  /** Bytes that may pass; below zero after a frame that was larger than the bucket. */
  level: number;
  /** Bytes a second, and the most that `level` can be. */
  rate: number;
  /** When `level` was right, by the clock. */
  at: number;
}

function waitFor({ level, rate }: Bucket, bytes: number): number {
  const missing = Math.min(bytes, rate) - level;
  return missing > 0 ? Math.ceil((missing * 1000) / rate) : 0;
}
