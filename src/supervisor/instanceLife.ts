/** How long one instance has lived and gone without use, against the most that is allowed. */
import type { ExitReason } from '../core/exitReason.js';

export interface LifeLimits {
  /** Milliseconds without input, output and attachment; absent: any time. */
  readonly idleMs?: number;
  /** Milliseconds since the start; absent: any time. */
  readonly lifetimeMs?: number;
}

/** What tells that an instance is in use: compared with the look before, so that use costs nothing. */
export interface Use {
  /** Somebody is attached, or output is held back: it is not the program that rests. */
  readonly isHeld: boolean;
  readonly lastSeq: number;
  readonly inputBytes: number;
}

export class InstanceLife {
  #quietSince: number;
  #lastSeq = -1;
  #inputBytes = -1;

  /** Times are of one clock that never steps back, in milliseconds. */
  constructor(private readonly startedAt: number) {
    this.#quietSince = startedAt;
  }

  /** Undefined: it may go on. To be asked every now and then: between two looks a quiet time begins. */
  overdue(
    { idleMs = Number.POSITIVE_INFINITY, lifetimeMs = Number.POSITIVE_INFINITY }: LifeLimits,
    { isHeld, lastSeq, inputBytes }: Use,
    now: number,
  ): ExitReason | undefined {
    if (isHeld || lastSeq !== this.#lastSeq || inputBytes !== this.#inputBytes) {
      this.#quietSince = now;
      this.#lastSeq = lastSeq;
      this.#inputBytes = inputBytes;
    }
    if (now - this.startedAt >= lifetimeMs) return 'lifetime-limit';
    return now - this.#quietSince >= idleMs ? 'idle-limit' : undefined;
  }
}
