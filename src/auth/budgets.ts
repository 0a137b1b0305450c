/**
 * Budgets of grants: live terminals, and input bytes a second. A budget belongs to (issuer, subject,
 * grant id), not to a token, so that neither renewal nor a second token refreshes it.
 */
import { LRUCache } from 'lru-cache';
import type { CreatedBy } from '../core/terminal.js';

/** Whom something is charged to. */
export interface BudgetHolder {
  readonly issuer: string;
  readonly subject: string;
  readonly grantId: string;
}

/** Whom the creation of a terminal was charged to. */
export function holdersOf({ issuer, subject, grants }: CreatedBy): readonly BudgetHolder[] {
  return grants.map((grantId) => ({ issuer, subject, grantId }));
}

/** One holder's limit. A delegated token is charged to its own grant and to each that it comes from. */
export interface Charge {
  readonly holder: BudgetHolder;
  readonly limit: number;
}

/**
 * Holders whose rate is remembered; above it the one used longest ago is forgotten and starts with
 * a full bucket again.
 */
const MAX_RATES = 65_536;

/** Counts live terminals. */
export class TerminalBudgets {
  readonly #live = new Map<string, number>();

  /** Counts one more against every charge, or against none when one of them is used up. */
  take(charges: readonly Charge[]): boolean {
    const isFree = charges.every(({ holder, limit }) => this.live(holder) < limit);
    if (isFree) this.add(charges.map(({ holder }) => holder));
    return isFree;
  }

  /** Counts a terminal that lives already, within its limit or not: after a restart. */
  add(holders: readonly BudgetHolder[]): void {
    for (const holder of holders) this.#live.set(keyOf(holder), this.live(holder) + 1);
  }

  /** The terminal has ended. */
  giveBack(holders: readonly BudgetHolder[]): void {
    for (const holder of holders) {
      const left = this.live(holder) - 1;
      if (left > 0) this.#live.set(keyOf(holder), left);
      else this.#live.delete(keyOf(holder));
    }
  }

  live(holder: BudgetHolder): number {
    return this.#live.get(keyOf(holder)) ?? 0;
  }
}

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
    const buckets = charges.map(({ holder, limit }) => this.#bucket(keyOf(holder), limit));
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

function keyOf({ issuer, subject, grantId }: BudgetHolder): string {
  return JSON.stringify([issuer, subject, grantId]);
}
