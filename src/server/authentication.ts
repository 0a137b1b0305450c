/** Who asks: exactly one token, sound, in time, over the connection it is bound to, not revoked. */
import { checkProof, type ProofMode, provesPossession } from '../auth/proof.js';
import type { Revocations } from '../auth/revocation.js';
import type { TokenVerifier, VerifiedToken } from '../auth/token.js';
import { GranttyError } from '../core/errors.js';
import type { Clock } from './clock.js';
import type { LeaseBook } from './leaseBook.js';
import type { Peer } from './peer.js';

export interface Authenticator {
  readonly tokens: Pick<TokenVerifier, 'recall' | 'verify' | 'epoch'>;
  readonly revocations: Revocations;
  readonly leases: LeaseBook;
  readonly pop: ProofMode;
  readonly clock: Clock;
}

export interface Credentials {
  /** The call's `authorization` headers, or on a stream the token that is in force. */
  readonly credentials: readonly string[] | string;
  readonly peer: Peer;
}

/**
 * A promise only for a token that is not remembered.
 * @throws TOKEN_MISSING, TOKEN_INVALID, TOKEN_EXPIRED, POP_MISMATCH, GRANT_REVOKED, KEYS_UNAVAILABLE
 */
export function authenticate(
  authenticator: Authenticator,
  { credentials, peer }: Credentials,
): VerifiedToken | Promise<VerifiedToken> {
  const text = typeof credentials === 'string' ? credentials : bearerToken(credentials);
  const known = authenticator.tokens.recall(text);
  if (known !== undefined) return accepted(authenticator, known, peer);
  const verified = authenticator.tokens.verify(text);
  return verified.then((token) => accepted(authenticator, token, peer));
}

function accepted(
  { revocations, leases, pop, clock }: Authenticator,
  token: VerifiedToken,
  peer: Peer,
): VerifiedToken {
  checkProof(token, peer.certificate?.thumbprint, pop);
  const { certificate } = peer;
  if (provesPossession(token, pop) && certificate && certificate.notAfter <= clock.now()) {
    throw new GranttyError('POP_MISMATCH', 'the client certificate has expired');
  }
  if (revocations.isRevoked(token)) {
    throw new GranttyError('GRANT_REVOKED', 'the token, or one that it descends from, was revoked');
  }
  // At once, so that whoever revokes it from now on finds what is done under it.
  leases.note(token);
  return token;
}

/** When the token, or the certificate that proves it, ends; milliseconds since the Unix epoch. */
export function endOf({ pop }: Authenticator, token: VerifiedToken, { certificate }: Peer): number {
  const end = token.expiresAt * 1000;
  return provesPossession(token, pop) && certificate ? Math.min(end, certificate.notAfter) : end;
}

/** RFC 6750, 2.1: the scheme in any case, one space, the token; who verifies that looks at its form. */
const BEARER = /^bearer /i;

/** The token in a call's `authorization` headers. */
export function bearerToken(values: readonly string[]): string {
  if (values.length === 0) {
    throw new GranttyError('TOKEN_MISSING', 'send metadata "authorization: Bearer <token>"');
  }
  const [value] = values;
  const isOne = values.length === 1 && value !== undefined && BEARER.test(value);
  if (isOne) return value.slice('bearer '.length);
  throw new GranttyError('TOKEN_INVALID', 'metadata "authorization" must be one "Bearer <token>"');
}
