/**
 * Carries a revocation out: in force in this server at once, then kept, put on record, its streams
 * ended and its input stopped on the way to the terminals.
 */
import type { Revocation } from '../auth/revocation.js';
import type { VerifiedToken } from '../auth/token.js';
import { GranttyError } from '../core/errors.js';
import type { Revoked } from '../core/revoked.js';
import type { Clock } from './clock.js';
import type { Gate } from './gate.js';
import { leaseId } from './leaseBook.js';
import type { OpenStreams } from './openStreams.js';

/** Milliseconds for the supervisor to confirm that nothing is on its way any more. */
const FENCE_TIMEOUT_MS = 5_000;

export interface RevocationResult {
  /** When it came into force, the first time; milliseconds since the Unix epoch. */
  readonly at: number;
  /** Streams that it ended. */
  readonly closedStreams: number;
}

/** A revocation that is in force. */
export interface Revoking {
  /**
   * Resolves when it is durable, on record, and nothing under it can reach a terminal any more.
   * @throws SUPERVISOR_UNAVAILABLE when that could not be confirmed, AUDIT_UNAVAILABLE when it could
   * not be kept or put on record; it is in force all the same
   */
  readonly done: Promise<RevocationResult>;
}

export class Revoker {
  constructor(
    private readonly gate: Gate,
    private readonly streams: OpenStreams,
    private readonly clock: Clock,
  ) {}

  /** In force when it returns. `decisionId` is absent when the operator does it. */
  begin(what: Revoked, decisionId?: string): Revoking {
    const { revocations } = this.gate;
    const revocation = revocations.revoke(what);
    const isRevoked = (token: VerifiedToken) => revocations.isRevoked(token);
    const { count, ended } = this.streams.endRevoked(isRevoked);
    const leases = [...this.gate.leases.of(isRevoked, this.clock.now())];
    if (what.kind === 'token') leases.push(leaseId(what));
    const done = this.#finish(what, decisionId, revocation, [
      this.#inTime(this.gate.supervisor.fence(leases)),
      this.#inTime(ended),
    ]).then(() => ({ at: revocation.at, closedStreams: count }));
    // Whoever waits hears of it; nobody has to.
    done.catch(() => {});
    return { done };
  }

  async #finish(
    what: Revoked,
    decisionId: string | undefined,
    { durable }: Revocation,
    stopped: readonly Promise<unknown>[],
  ): Promise<void> {
    const { audit, logger } = this.gate;
    const onRecord = audit.change({
      change: 'revoked',
      timeMs: this.clock.now(),
      ...(decisionId !== undefined && { decisionId }),
      what,
    });
    const [kept, recorded, ...ended] = await Promise.allSettled([durable, onRecord, ...stopped]);
    for (const result of [kept, recorded, ...ended]) {
      if (result?.status !== 'rejected') continue;
      logger.error(
        { err: result.reason, revoked: what.kind },
        'revocation not carried out in full',
      );
    }
    if (kept?.status === 'rejected' || recorded?.status === 'rejected') {
      throw new GranttyError(
        'AUDIT_UNAVAILABLE',
        'the revocation is in force in this server but could not be kept and put on record; revoke again',
      );
    }
    if (ended.some(({ status }) => status === 'rejected')) {
      throw new GranttyError(
        'SUPERVISOR_UNAVAILABLE',
        'the revocation is durable and in force in this server; that the last input has stopped could not be confirmed: revoke again to find out',
      );
    }
  }

  async #inTime<T>(work: Promise<T>): Promise<T> {
    let cancel = () => {};
    const tooLate = new Promise<never>((_, reject) => {
      cancel = this.clock.after(FENCE_TIMEOUT_MS, () =>
        reject(new Error(`no answer within ${FENCE_TIMEOUT_MS} ms`)),
      );
    });
    try {
      return await Promise.race([work, tooLate]);
    } finally {
      cancel();
    }
  }
}
