/** Proof of possession: whether a connection shows the certificate that a token is bound to (RFC 8705). */
import { createHash } from 'node:crypto';
import { GranttyError } from '../core/errors.js';
import type { VerifiedToken } from './token.js';

/** SHA-256 of a certificate's DER, base64url without padding: the `x5t#S256` of a token's `cnf`. */
export function certificateThumbprint(der: Uint8Array): string {
  return createHash('sha256').update(der).digest('base64url');
}

/**
 * `thumbprint` is that of the client certificate of the connection, if it has shown one. A token
 * without `cnf` is a bearer token: it passes.
 * @throws POP_MISMATCH
 */
export function checkProof({ cnf }: VerifiedToken, thumbprint: string | undefined): void {
  if (cnf === undefined || cnf.x5tS256 === thumbprint) return;
  throw new GranttyError(
    'POP_MISMATCH',
    'the token is bound to a client certificate that this connection has not shown',
  );
}
