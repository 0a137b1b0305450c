/** Whether a broken stream is opened again, and how long that waits. */
import { setTimeout as delay } from 'node:timers/promises';
import { CallError, type CallFailure, isCallFailure } from './failure.js';

/** Milliseconds of the first wait; each further one doubles it, up to the greatest. */
const FIRST_WAIT_MS = 100;
const GREATEST_WAIT_MS = 5_000;
/** Milliseconds without a connection after which the last failure is thrown. */
const PATIENCE_MS = 60_000;

/** Time and chance, so that tests decide on them. */
export interface Pacing {
  readonly now: () => number;
  /** 0 up to 1. */
  readonly random: () => number;
  readonly sleep: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
}

export const realPacing: Pacing = {
  now: () => performance.now(),
  random: Math.random,
  sleep: (ms, signal) => delay(ms, undefined, signal ? { signal } : {}),
};

/** The attempts of one stream. Before it was open for the first time every failure is final. */
export class Reconnection {
  #brokenSince: number | undefined;
  #attempt = 0;
  #opened = false;

  constructor(
    private readonly token: () => Promise<string>,
    private readonly signal: AbortSignal | undefined,
    private readonly pacing: Pacing = realPacing,
  ) {}

  /** The stream is open: the next failure starts from the first wait. */
  opened(): void {
    this.#opened = true;
    this.#attempt = 0;
    this.#brokenSince = undefined;
  }

  /**
   * Waits until another attempt is due; gives its number since the stream was open, from 1.
   * @throws `failure` itself when another attempt cannot help or the patience is over
   */
  async wait(failure: unknown, usedToken: string): Promise<number> {
    this.signal?.throwIfAborted();
    if (!this.#opened || !isCallFailure(failure)) throw failure;
    if (isTokenExpiry(failure)) {
      if ((await this.token()) === usedToken) throw failure;
    } else if (!mayPass(failure)) {
      throw failure;
    }
    const now = this.pacing.now();
    this.#brokenSince ??= now;
    if (now - this.#brokenSince > PATIENCE_MS) throw failure;
    const ceiling = Math.min(GREATEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#attempt);
    this.#attempt += 1;
    const asked = failure instanceof CallError ? (failure.retryAfterMs ?? 0) : 0;
    // Half of it is left to chance, so that the clients of a restarted server do not come at once.
    const wait = Math.max(asked, ceiling * (0.5 + 0.5 * this.pacing.random()));
    await this.pacing.sleep(wait, this.signal);
    return this.#attempt;
  }
}

function isTokenExpiry(failure: CallFailure): boolean {
  return failure instanceof CallError && failure.reason === 'TOKEN_EXPIRED';
}

/** A lost connection is UNAVAILABLE too. */
function mayPass(failure: CallFailure): boolean {
  if (failure instanceof CallError && failure.retryAfterMs !== undefined) return true;
  return failure.code === 'UNAVAILABLE';
}
