/** Tokens that are bound to a client certificate. */
import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { certificateThumbprint, checkProof, provesPossession } from '../../src/auth/proof.js';
import type { VerifiedToken } from '../../src/auth/token.js';

const der = Buffer.from('a certificate');
const thumbprint = createHash('sha256').update(der).digest('base64url');
const bound = { cnf: { x5tS256: thumbprint } } as VerifiedToken;
const bearer = {} as VerifiedToken;

const mismatch = expect.objectContaining({ reason: 'POP_MISMATCH' });

describe.each(['required', 'if-present'] as const)('where proof is %s', (mode) => {
  it('a bound token is good over a connection that has shown the certificate', () => {
    expect(() => checkProof(bound, certificateThumbprint(der), mode)).not.toThrow();
    expect(provesPossession(bound, mode)).toBe(true);
  });

  it.each([
    ['another', certificateThumbprint(Buffer.from('b'))],
    ['none', undefined],
    ['an empty one', ''],
  ])('a bound token is refused over a connection that has shown %s', (_, shown) => {
    expect(() => checkProof(bound, shown, mode)).toThrow(mismatch);
  });
});

describe('a token that is not bound', () => {
  it('is good over any connection where proof is if-present or off, and proves nothing', () => {
    for (const mode of ['if-present', 'off'] as const) {
      expect(() => checkProof(bearer, undefined, mode)).not.toThrow();
      expect(() => checkProof(bearer, thumbprint, mode)).not.toThrow();
      expect(provesPossession(bearer, mode)).toBe(false);
    }
  });

  it('is refused over any connection where proof is required', () => {
    for (const shown of [undefined, thumbprint]) {
      expect(() => checkProof(bearer, shown, 'required')).toThrow(mismatch);
    }
  });
});

describe('where proof is off', () => {
  it('a bound token is good over any connection, and proves nothing', () => {
    expect(() => checkProof(bound, undefined, 'off')).not.toThrow();
    expect(provesPossession(bound, 'off')).toBe(false);
  });
});
