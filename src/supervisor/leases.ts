/** Which leases still hold: asked immediately before every effect on a terminal. */
import { GranttyError } from '../core/errors.js';
import type { Lease } from './api.js';

/**
 * Milliseconds for which a fenced lease is remembered: longer than any lease can last (a token lives
 * one hour and its clock may be 30 s off), so that nothing sent before the fence arrives after it.
 */
const REMEMBER_MS = 2 * 60 * 60 * 1000;

export class Leases {
  /** Lease id → when it was fenced; in that order. */
  readonly #fenced = new Map<string, number>();

  constructor(private readonly now: () => number) {}

  fence(ids: readonly string[]): void {
    const now = this.now();
    for (const [id, at] of this.#fenced) {
      if (now - at < REMEMBER_MS) break;
      this.#fenced.delete(id);
    }
    for (const id of ids) {
      this.#fenced.delete(id);
      this.#fenced.set(id, now);
    }
  }

  /** Undefined while the lease holds, else why it does not. */
  refusal(lease: Lease): GranttyError | undefined {
    const { id, scope } = lease;
    if (this.#fenced.has(id) || (scope !== undefined && this.#fenced.has(scope))) {
      return new GranttyError('GRANT_REVOKED', 'the authority for this operation was revoked');
    }
    if (this.now() >= lease.notAfter) {
      return new GranttyError(
        'TOKEN_EXPIRED',
        'the authority for this operation has expired; use a new token',
      );
    }
    return undefined;
  }

  /** @throws what `refusal` gives */
  check(lease: Lease): void {
    const refusal = this.refusal(lease);
    if (refusal) throw refusal;
  }
}
