/** Who asks: exactly one token, sound, in time, over the connection it is bound to, not revoked. */
import { checkProof, type ProofMode, provesPossession } from '../auth/proof.js';
import type { Revocations } from '../auth/revocation.js';
import type { TokenVerifier, VerifiedToken } from '../auth/token.js';
import { GranttyError } from '../core/errors.js';
import type { Clock } from './clock.js';
import type { LeaseBook } from './leaseBook.js';
import type { Peer } from './peer.js';

export interface Authenticator {
  readonly tokens: Pick<TokenVerifier, 'verify' | 'epoch'>;
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

/** @throws TOKEN_MISSING, TOKEN_INVALID, TOKEN_EXPIRED, POP_MISMATCH, GRANT_REVOKED, KEYS_UNAVAILABLE */
export async function authenticate(
  { tokens, revocations, leases, pop, clock }: Authenticator,
  { credentials, peer }: Credentials,
): Promise<VerifiedToken> {
  const text = typeof credentials === 'string' ? credentials : bearerToken(credentials);
  const token = await tokens.verify(text);
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

/** RFC 6750, 2.1: the scheme in any case, one space, the token. */
const BEARER = /^bearer ([A-Za-z0-9._~+/-]+=*)$/i;

/** The token in a call's `authorization` headers. */
export function bearerToken(values: readonly string[]): string {
  if (values.length === 0) {
    throw new GranttyError('TOKEN_MISSING', 'send metadata "authorization: Bearer <token>"');
  }
  const token = values.length === 1 ? BEARER.exec(values[0] ?? '')?.[1] : undefined;
  if (token !== undefined) return token;
  throw new GranttyError('TOKEN_INVALID', 'metadata "authorization" must be one "Bearer <token>"');
}
