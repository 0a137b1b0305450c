/** Under which tokens something may be on its way to a terminal: what a revocation has to fence. */
import { LRUCache } from 'lru-cache';
import type { VerifiedToken } from '../auth/token.js';

/**
 * Tokens that are remembered, each up to its end. Above it the one used longest ago is forgotten:
 * what was decided under it has long had its effect.
 */
const MAX_TOKENS = 65_536;

export class LeaseBook {
  /** By the hash of the token. */
  readonly #tokens = new LRUCache<string, VerifiedToken>({ max: MAX_TOKENS });

  /** To be called whenever a token has been accepted, before anything is decided by it. */
  note(token: VerifiedToken): void {
    if (this.#tokens.get(token.hash) !== token) this.#tokens.set(token.hash, token);
  }

  /** The ids of leases of the tokens for which `isRevoked` says so. `now` in milliseconds. */
  of(isRevoked: (token: VerifiedToken) => boolean, now: number): readonly string[] {
    const ids = new Set<string>();
    for (const [hash, token] of this.#tokens.entries()) {
      if (token.expiresAt * 1000 <= now) this.#tokens.delete(hash);
      else if (isRevoked(token)) ids.add(leaseId(token));
    }
    return [...ids];
  }
}

const ids = new WeakMap<object, string>();

/** Names all that is done under a token, so that revoking it can fence everything at once. */
export function leaseId(token: Pick<VerifiedToken, 'issuer' | 'jti'>): string {
  let id = ids.get(token);
  if (id === undefined) {
    id = JSON.stringify([token.issuer, token.jti]);
    ids.set(token, id);
  }
  return id;
}
