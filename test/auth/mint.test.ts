/** Minted tokens: what a verifier would refuse is not minted at all. */
import { describe, expect, it } from '@jest/globals';
import { parseJwks } from '../../src/auth/jwks.js';
import { generateIssuerKey, type MintOptions, mintToken, publicJwks } from '../../src/auth/mint.js';
import { TokenVerifier } from '../../src/auth/token.js';
import { AUDIENCE, ISSUER, NOW, soundGrant } from './vectorForge.js';

const issuerKey = await generateIssuerKey();

const options: MintOptions = {
  key: issuerKey.privateJwk,
  issuer: ISSUER,
  audience: AUDIENCE,
  subject: 'alice',
  ttl: 600,
  grants: [soundGrant],
  now: NOW * 1000 + 999,
};

async function verify(token: string) {
  const trusted = { ceiling: undefined, keys: await parseJwks(JSON.stringify(issuerKey.jwks)) };
  const keys = { epoch: 0, issuer: () => trusted };
  return new TokenVerifier({ keys, audience: AUDIENCE, clock: () => options.now }).verify(token);
}

describe('a minted token', () => {
  it('says what it was asked to say', async () => {
    const x5tS256 = 'A'.repeat(43);
    const verified = await verify(
      await mintToken({ ...options, clientId: 'cli', jti: 'one', x5tS256 }),
    );
    expect(verified).toMatchObject({
      issuer: ISSUER,
      audience: AUDIENCE,
      subject: 'alice',
      clientId: 'cli',
      jti: 'one',
      issuedAt: NOW,
      notBefore: NOW,
      expiresAt: NOW + 600,
      cnf: { x5tS256 },
      keyId: issuerKey.privateJwk.kid,
    });
    expect(verified.grants.map(({ id }) => id)).toEqual(['g1']);
  });

  it('has the subject as client and an id of its own unless told otherwise', async () => {
    const [one, two] = [
      await verify(await mintToken(options)),
      await verify(await mintToken(options)),
    ];
    expect(one.clientId).toBe('alice');
    expect(one.jti).not.toBe(two.jti);
    expect(one.cnf).toBeUndefined();
  });

  it.each<[string, Partial<MintOptions>, string]>([
    ['a lifetime of nothing', { ttl: 0 }, 'ttl'],
    ['a lifetime of over an hour', { ttl: 3601 }, 'ttl'],
    ['half a second', { ttl: 0.5 }, 'ttl'],
    ['an empty subject', { subject: '' }, 'sub'],
    [
      'an unknown action',
      { grants: [{ ...soundGrant, actions: ['terminal.kil'] }] },
      'authorization_details[0].actions',
    ],
    [
      'an unknown constraint',
      { grants: [{ ...soundGrant, constraints: { x: 1 } }] },
      'authorization_details[0].constraints',
    ],
    ['a thumbprint that is none', { x5tS256: 'AA' }, 'cnf'],
    ['a public key', { key: issuerKey.jwks.keys[0] ?? {} }, 'key'],
    ['a key for another algorithm', { key: { ...issuerKey.privateJwk, alg: 'ES256' } }, 'key'],
    ['a key without kid', { key: { ...issuerKey.privateJwk, kid: '' } }, 'kid'],
    [
      'too much in it',
      { subject: 'a'.repeat(500), grants: grantsOf(32, 'x'.repeat(60)) },
      '8192 bytes',
    ],
  ])('is not made with %s', async (_, changes, message) => {
    await expect(mintToken({ ...options, ...changes })).rejects.toThrow(message);
  });

  function grantsOf(count: number, agent: string) {
    const resource = { owner: '1000', agent, session: agent, terminal: agent };
    return Array.from({ length: count }, (_, index) => ({
      ...soundGrant,
      id: `g${index}`,
      resource,
    }));
  }
});

describe('the public half of a key', () => {
  it('has nothing of the private one', () => {
    const secret = Object.fromEntries(
      ['d', 'p', 'q', 'dp', 'dq', 'qi', 'k'].map((name) => [name, 'secret']),
    );
    const [jwk] = publicJwks({ ...issuerKey.privateJwk, ...secret }).keys;
    expect(jwk).toEqual(issuerKey.jwks.keys[0]);
    expect(Object.keys(jwk ?? {}).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x']);
  });
});
