/** Proof of possession: whether a connection shows the certificate that a token is bound to (RFC 8705). */
import { createHash } from 'node:crypto';
import { GranttyError } from '../core/errors.js';
import type { VerifiedToken } from './token.js';

/** SHA-256 of a certificate's DER, base64url without padding: the `x5t#S256` of a token's `cnf`. */
export function certificateThumbprint(der: Uint8Array): string {
  return createHash('sha256').update(der).digest('base64url');
}

/**
 * What is asked of tokens: `required`: each is bound to a certificate that the connection has shown.
 * `if-present`: one that is bound must be used so; others are bearer tokens. `off`: the binding is not
 * looked at, because something before this server ends TLS and has looked.
 */
export const proofModes = ['required', 'if-present', 'off'] as const;
export type ProofMode = (typeof proofModes)[number];

/**
 * `thumbprint` is that of the client certificate of the connection, if it has shown one.
 * @throws POP_MISMATCH
 */
export function checkProof(
  { cnf }: VerifiedToken,
  thumbprint: string | undefined,
  mode: ProofMode,
): void {
  if (mode === 'off') return;
  if (cnf === undefined && mode === 'required') {
    throw new GranttyError(
      'POP_MISMATCH',
      'this server takes only tokens that are bound to a client certificate (cnf)',
    );
  }
  if (cnf === undefined || cnf.x5tS256 === thumbprint) return;
  throw new GranttyError(
    'POP_MISMATCH',
    'the token is bound to a client certificate that this connection has not shown',
  );
}

/** Whether a token that passed `checkProof` was used by who holds the certificate's key. */
export function provesPossession({ cnf }: VerifiedToken, mode: ProofMode): boolean {
  return mode !== 'off' && cnf !== undefined;
}
