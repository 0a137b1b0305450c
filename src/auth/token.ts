/** Verifies tokens: form, key, signature, claims, time, in this order; remembers the good ones. */
import { hash as hashOf } from 'node:crypto';
import { compactVerify } from 'jose';
import { LRUCache } from 'lru-cache';
import { GranttyError } from '../core/errors.js';
import type { Ceiling, Grant } from '../core/grant.js';
import { type Claims, parseClaims } from './claims.js';
import type { VerificationKey } from './jwk.js';
import { parseCompactJws, type UnverifiedToken } from './jws.js';
import type { Keys, TrustedIssuer } from './keys.js';

/**
 * Seconds by which an issuer's clock may be ahead of ours, for `iat` and `nbf`. `exp` gets none: a
 * token, and all that was decided under it, ends when it says.
 */
export const CLOCK_SKEW_SECONDS = 30;

/** Milliseconds for which a verified token is remembered. */
const MAX_CACHE_AGE_MS = 60_000;

/** Verified tokens that are remembered; above it the one used longest ago is forgotten. */
const MAX_CACHED_TOKENS = 4096;

export interface TokenVerifierOptions {
  readonly keys: Keys;
  /** The one `aud` that tokens must have. */
  readonly audience: string;
  /** The issuer whose tokens may carry actors and lineage: the server's own; absent: none. */
  readonly ownIssuer?: string;
  /** Milliseconds since the Unix epoch. */
  readonly clock: () => number;
}

export interface VerifiedToken extends Claims {
  /** SHA-256 of the token, hex: names it where the token itself must not be kept. */
  readonly hash: string;
  readonly keyId: string;
}

interface Remembered {
  readonly token: VerifiedToken;
  /** Milliseconds since the Unix epoch. */
  readonly verifiedAt: number;
}

export class TokenVerifier {
  readonly #options: TokenVerifierOptions;
  /** By hash; only tokens that verified under the keys of `#cacheEpoch`. */
  readonly #cache = new LRUCache<string, Remembered>({ max: MAX_CACHED_TOKENS });
  #cacheEpoch = 0;

  constructor(options: TokenVerifierOptions) {
    this.#options = options;
  }

  /** Raised whenever a key came or went: what was verified before must be verified again. */
  get epoch(): number {
    return this.#options.keys.epoch;
  }

  /**
   * Whether the token is revoked or bound to a certificate is not looked at.
   * @throws TOKEN_INVALID, TOKEN_EXPIRED, KEYS_UNAVAILABLE; no message quotes the token
   */
  async verify(token: string): Promise<VerifiedToken> {
    const known = this.recall(token);
    if (known !== undefined) return known;

    const { clock } = this.#options;
    const hash = hashOf('sha256', token, 'hex');
    const { epoch } = this;
    const verified = await this.#verifyAfresh(token, hash);
    if (this.epoch !== epoch) return this.verify(token);
    const now = clock();
    this.#cache.set(hash, { token: checkTimes(verified, now), verifiedAt: now });
    return verified;
  }

  /** As `verify`, at once; undefined where the token is not remembered. @throws as `verify` */
  recall(token: string): VerifiedToken | undefined {
    const { epoch } = this;
    if (this.#cacheEpoch !== epoch) {
      this.#cache.clear();
      this.#cacheEpoch = epoch;
    }
    const found = this.#cache.get(hashOf('sha256', token, 'hex'));
    if (found === undefined) return undefined;
    const now = this.#options.clock();
    if (Math.abs(now - found.verifiedAt) >= MAX_CACHE_AGE_MS) return undefined;
    this.#ceilingOf(found.token);
    return checkTimes(found.token, now);
  }

  async #verifyAfresh(token: string, hash: string): Promise<VerifiedToken> {
    const unverified = asTokenInvalid(() => parseCompactJws(token));
    const issuer = this.#issuerOf(unverified);
    await verifySignature(token, unverified, issuer.keys.get(unverified.kid));
    const { audience, ownIssuer } = this.#options;
    const mayDelegate = unverified.payload.iss === ownIssuer;
    const claims = asTokenInvalid(() => parseClaims(unverified.payload, mayDelegate));
    if (claims.audience !== audience) throw invalid('aud: is not this service');
    const ceiling = this.#ceilingOf({ ...claims, keyId: unverified.kid });
    return { ...claims, grants: below(ceiling, claims.grants), hash, keyId: unverified.kid };
  }

  /**
   * That of the issuer whose word it all rests on: a delegated token is as good as the one at its
   * root, and no better than any in between.
   * @throws TOKEN_INVALID, KEYS_UNAVAILABLE when the keys of one of them are not there any more
   */
  #ceilingOf(token: Pick<VerifiedToken, 'issuer' | 'keyId' | 'lineage'>): Ceiling | undefined {
    for (const above of token.lineage) this.#believed(above);
    const issuer = this.#believed(token);
    const [root] = token.lineage;
    return root === undefined ? issuer.ceiling : this.#believed(root).ceiling;
  }

  #believed({ issuer, keyId }: Pick<VerifiedToken, 'issuer' | 'keyId'>): TrustedIssuer {
    const trusted = this.#options.keys.issuer(issuer);
    if (trusted?.keys.has(keyId)) return trusted;
    throw invalid('the key of a token that it descends from is not believed any more');
  }

  #issuerOf({ payload }: UnverifiedToken): TrustedIssuer {
    const name = payload.iss;
    if (typeof name !== 'string') throw invalid('iss: must be a string');
    const issuer = this.#options.keys.issuer(name);
    if (issuer === undefined) throw invalid('iss: is not an issuer that is believed here');
    return issuer;
  }
}

async function verifySignature(
  token: string,
  { algorithm }: UnverifiedToken,
  key: VerificationKey | undefined,
): Promise<void> {
  if (key === undefined) throw invalid('header.kid: names no key of the issuer');
  if (!key.algorithms.includes(algorithm)) {
    throw invalid('header.alg: is not the algorithm of the key');
  }
  try {
    await compactVerify(token, key.key, { algorithms: [algorithm] });
  } catch (cause) {
    throw invalid('the signature does not hold', cause);
  }
}

/** @throws TOKEN_EXPIRED, TOKEN_INVALID */
function checkTimes(token: VerifiedToken, nowMs: number): VerifiedToken {
  const now = nowMs / 1000;
  if (now >= token.expiresAt) throw new GranttyError('TOKEN_EXPIRED', 'the token has expired');
  if (token.issuedAt > now + CLOCK_SKEW_SECONDS) throw invalid('iat: lies in the future');
  if (token.notBefore > now + CLOCK_SKEW_SECONDS) throw invalid('nbf: is not yet reached');
  return token;
}

function below(ceiling: Ceiling | undefined, grants: readonly Grant[]): readonly Grant[] {
  return ceiling === undefined ? grants : grants.map((grant) => ({ ...grant, ceiling }));
}

function invalid(what: string, cause?: unknown): GranttyError {
  return new GranttyError('TOKEN_INVALID', `the token is refused: ${what}`, { cause });
}

/** What the parsers of the parts say about a field is said about the token. */
function asTokenInvalid<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (error instanceof GranttyError) throw invalid(error.message);
    throw error;
  }
}
