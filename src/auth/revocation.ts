/** Tokens that no longer count, although their signature and time still hold. */
import type { VerifiedToken } from './token.js';

export interface Revocations {
  /** Raised with every revocation: what was decided before must be decided again. */
  readonly epoch: number;
  /** Whether the token, or one that it descends from, has been revoked. */
  isRevoked(token: VerifiedToken): boolean;
}

export const noRevocations: Revocations = { epoch: 0, isRevoked: () => false };
