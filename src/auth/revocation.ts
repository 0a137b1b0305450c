/** Tokens that no longer count, although their signature and time still hold. */
import type { Revoked } from '../core/revoked.js';
import type { VerifiedToken } from './token.js';

export interface Revocations {
  /** Raised with every revocation: what was decided before must be decided again. */
  readonly epoch: number;
  /** Whether the token, or one that it descends from, has been revoked. */
  isRevoked(token: VerifiedToken): boolean;
  /** Whether the token of this name, or the key, has itself been revoked. */
  isTokenRevoked(issuer: string, jti: string): boolean;
  isKeyRevoked(issuer: string, keyId: string): boolean;
  /** In force when it returns, whatever becomes of the disk. */
  revoke(what: Revoked): Revocation;
}

/** A revocation that is in force. */
export interface Revocation {
  /** When it came into force, the first time; milliseconds since the Unix epoch. */
  readonly at: number;
  /** Resolves when it will survive a power cut. Rejects when it could not be kept: revoke again. */
  readonly durable: Promise<void>;
}
