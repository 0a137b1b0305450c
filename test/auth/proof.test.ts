/** Tokens that are bound to a client certificate. */
import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { certificateThumbprint, checkProof } from '../../src/auth/proof.js';
import type { VerifiedToken } from '../../src/auth/token.js';

const der = Buffer.from('a certificate');
const thumbprint = createHash('sha256').update(der).digest('base64url');
const bound = { cnf: { x5tS256: thumbprint } } as VerifiedToken;
const bearer = {} as VerifiedToken;

describe('a token bound to a certificate', () => {
  it('is good over a connection that has shown it', () => {
    expect(() => checkProof(bound, certificateThumbprint(der))).not.toThrow();
  });

  it.each([
    ['another', certificateThumbprint(Buffer.from('b'))],
    ['none', undefined],
    ['an empty one', ''],
  ])('is refused over a connection that has shown %s', (_, shown) => {
    expect(() => checkProof(bound, shown)).toThrow(
      expect.objectContaining({ reason: 'POP_MISMATCH' }),
    );
  });
});

describe('a token that is not bound', () => {
  it('is good over any connection', () => {
    expect(() => checkProof(bearer, undefined)).not.toThrow();
    expect(() => checkProof(bearer, thumbprint)).not.toThrow();
  });
});
