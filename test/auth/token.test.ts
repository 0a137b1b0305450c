/** What the verifier remembers, and for how long. What it refuses stands in the token vectors. */
import { beforeAll, describe, expect, it } from '@jest/globals';
import type { JWK } from 'jose';
import type { Keys, TrustedIssuer } from '../../src/auth/keys.js';
import { parseJwks } from '../../src/auth/keys.js';
import { generateIssuerKey, mintToken } from '../../src/auth/mint.js';
import { TokenVerifier } from '../../src/auth/token.js';
import { GranttyError } from '../../src/core/errors.js';
import type { Ceiling } from '../../src/core/grant.js';
import type { Selector } from '../../src/core/selector.js';
import { AUDIENCE, ISSUER, key, NOW, soundGrant, withClaims } from './vectorForge.js';

/** Keys whose epoch the test sets, and that count how often they are asked. */
class FakeKeys implements Keys {
  epoch = 1;
  lookups = 0;
  trusted: TrustedIssuer | undefined;
  whenAsked: () => void = () => undefined;

  issuer(name: string): TrustedIssuer | undefined {
    this.lookups += 1;
    this.whenAsked();
    return name === ISSUER ? this.trusted : undefined;
  }
}

let vectorKeys: TrustedIssuer;

beforeAll(async () => {
  vectorKeys = { ceiling: undefined, keys: await keysOf({ ...key.publicJwk, kid: 'ed' }) };
});

function keysOf(...jwks: readonly JWK[]) {
  return parseJwks(JSON.stringify({ keys: jwks }));
}

interface Setup {
  readonly keys: FakeKeys;
  readonly verifier: TokenVerifier;
  /** Moves the clock by so many seconds. */
  advance(seconds: number): void;
}

function setUp(options: { ownIssuer?: string } = {}): Setup {
  const keys = new FakeKeys();
  keys.trusted = vectorKeys;
  let now = NOW;
  const clock = () => now * 1000;
  return {
    keys,
    verifier: new TokenVerifier({ keys, audience: AUDIENCE, clock, ...options }),
    advance: (seconds) => {
      now += seconds;
    },
  };
}

const token = withClaims({});

async function reasonOf(verification: Promise<unknown>): Promise<unknown> {
  const error: unknown = await verification.catch((thrown: unknown) => thrown);
  return error instanceof GranttyError ? error.reason : error;
}

describe('a verified token', () => {
  it('is remembered for less than a minute', async () => {
    const { keys, verifier, advance } = setUp();
    const first = await verifier.verify(token);
    advance(59.9);
    expect(await verifier.verify(token)).toBe(first);
    expect(keys.lookups).toBe(1);
    advance(0.1);
    expect(await verifier.verify(token)).toEqual(first);
    expect(keys.lookups).toBe(2);
  });

  it('is verified again when the clock has stepped back', async () => {
    const { keys, verifier, advance } = setUp();
    await verifier.verify(token);
    advance(-20);
    await verifier.verify(token);
    expect(keys.lookups).toBe(1);
    advance(20 - 3600);
    expect(await reasonOf(verifier.verify(token))).toBe('TOKEN_INVALID');
    expect(keys.lookups).toBe(2);
  });

  it('expires although it is remembered', async () => {
    const { keys, verifier, advance } = setUp();
    advance(570);
    await verifier.verify(token);
    advance(29);
    await verifier.verify(token);
    advance(1);
    expect(await reasonOf(verifier.verify(token))).toBe('TOKEN_EXPIRED');
    expect(keys.lookups).toBe(1);
  });

  it('is forgotten when keys change', async () => {
    const { keys, verifier } = setUp();
    await verifier.verify(token);
    keys.trusted = { ceiling: undefined, keys: await keysOf({ ...key.publicJwk, kid: 'next' }) };
    keys.epoch += 1;
    expect(await reasonOf(verifier.verify(token))).toBe('TOKEN_INVALID');
  });

  it('does not outlive keys that change while it is verified', async () => {
    const { keys, verifier } = setUp();
    keys.whenAsked = () => {
      keys.whenAsked = () => undefined;
      queueMicrotask(() => {
        keys.trusted = undefined;
        keys.epoch += 1;
      });
    };
    expect(await reasonOf(verifier.verify(token))).toBe('TOKEN_INVALID');
    expect(keys.lookups).toBe(2);
  });

  it('is not remembered when it was refused', async () => {
    const { keys, verifier, advance } = setUp();
    const early = withClaims({ iat: NOW + 40, nbf: NOW + 40 });
    expect(await reasonOf(verifier.verify(early))).toBe('TOKEN_INVALID');
    advance(10);
    await verifier.verify(early);
    expect(keys.lookups).toBe(2);
  });

  it('is named by its hash', async () => {
    const { verifier } = setUp();
    const { hash } = await verifier.verify(token);
    expect(hash).toMatch(/^[0-9a-f]{64}$/);
    expect((await verifier.verify(withClaims({ jti: 'token-2' }))).hash).not.toBe(hash);
  });

  it('carries the ceiling of its issuer in each grant', async () => {
    const { keys, verifier } = setUp();
    const ceiling: Ceiling = { owners: ['1000' as Selector], actions: ['terminal.read'] };
    keys.trusted = { ...vectorKeys, ceiling };
    const two = [soundGrant, { ...soundGrant, id: 'g2' }];
    const { grants } = await verifier.verify(withClaims({ authorization_details: two }));
    expect(grants.map((grant) => grant.ceiling)).toEqual([ceiling, ceiling]);
  });
});

describe('a token whose keys cannot be had', () => {
  it('is refused as such, not as invalid', async () => {
    const { keys, verifier } = setUp();
    keys.whenAsked = () => {
      throw new GranttyError('KEYS_UNAVAILABLE', 'none');
    };
    expect(await reasonOf(verifier.verify(token))).toBe('KEYS_UNAVAILABLE');
  });
});

describe('claims of delegation', () => {
  const act = { sub: 'reviewer', act: { sub: 'coder', iss: ISSUER } };
  const lineage = [
    { iss: 'https://issuer.test', jti: 'root' },
    { iss: 'https://grantty.test', jti: 'child' },
  ];

  it('count when the own issuer makes them', async () => {
    const { verifier } = setUp({ ownIssuer: ISSUER });
    const verified = await verifier.verify(withClaims({ act, lineage }));
    expect(verified.actors).toEqual(['reviewer', 'coder']);
    expect(verified.lineage).toEqual([
      { issuer: 'https://issuer.test', jti: 'root' },
      { issuer: 'https://grantty.test', jti: 'child' },
    ]);
  });

  it.each([{ act }, { lineage }, { act: undefined, lineage: null }])(
    'refuse the token of any other issuer: %j',
    async (claims) => {
      const { verifier } = setUp({ ownIssuer: 'https://grantty.test' });
      expect(await reasonOf(verifier.verify(withClaims(claims)))).toBe('TOKEN_INVALID');
    },
  );

  it.each([
    { act: 'coder' },
    { act: {} },
    { act: { sub: 1 } },
    { act: { sub: 'a', act: null } },
    { act: nested(17) },
    { lineage: {} },
    { lineage: [{ iss: 'a' }] },
    { lineage: [{ iss: 'a', jti: 'b', exp: 1 }] },
    { lineage: Array.from({ length: 17 }, () => ({ iss: 'a', jti: 'b' })) },
  ])('are checked even so: %j', async (claims) => {
    const { verifier } = setUp({ ownIssuer: ISSUER });
    expect(await reasonOf(verifier.verify(withClaims(claims)))).toBe('TOKEN_INVALID');
  });

  function nested(depth: number): object {
    return depth === 1 ? { sub: 'a' } : { sub: 'a', act: nested(depth - 1) };
  }
});

describe('a refusal', () => {
  const CANARY = 'Zq7canary';

  it('never quotes the token', async () => {
    const grant = (changes: object) => ({ authorization_details: [{ ...soundGrant, ...changes }] });
    const { verifier } = setUp();
    const refusedClaims = [
      { iss: CANARY },
      { aud: CANARY },
      { exp: CANARY },
      { cnf: { [CANARY]: CANARY } },
      { act: { sub: CANARY } },
      { sub: `${CANARY}\n` },
      grant({ id: { [CANARY]: 1 } }),
      grant({ type: CANARY }),
      grant({ [CANARY]: CANARY }),
      grant({ actions: [CANARY] }),
      grant({
        resource: { owner: `*${CANARY}`, agent: CANARY, session: CANARY, terminal: CANARY },
      }),
      grant({ constraints: { [CANARY]: 1 } }),
      grant({ constraints: { commands: [[CANARY]] } }),
      grant({ constraints: { cwd_under: [CANARY] } }),
      grant({ constraints: { env_allow: [`=${CANARY}`] } }),
      grant({ constraints: { signals: [CANARY] } }),
    ];
    const tokens = [
      CANARY,
      `${CANARY}.${CANARY}.${CANARY}`,
      `${token}${CANARY}`,
      ...refusedClaims.map((claims) => withClaims({ jti: CANARY, ...claims })),
    ];
    for (const refused of tokens) {
      const error: unknown = await verifier.verify(refused).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(GranttyError);
      const { message, metadata, violations } = error as GranttyError;
      const told = JSON.stringify({ message, metadata, violations });
      expect(told).not.toContain(CANARY);
      for (const part of refused.split('.')) expect(told).not.toContain(part);
    }
  });
});

describe('a token of each algorithm', () => {
  it.each(['EdDSA', 'Ed25519', 'ES256', 'RS256'])('%s is verified', async (alg) => {
    const { exportJWK, generateKeyPair } = await import('jose');
    const pair = await generateKeyPair(alg, { extractable: true });
    const jwk = { ...(await exportJWK(pair.publicKey)), kid: 'k', alg };
    const { keys, verifier } = setUp();
    keys.trusted = { ceiling: undefined, keys: await keysOf(jwk) };
    const minted = await mintToken({
      key: { ...(await exportJWK(pair.privateKey)), kid: 'k', alg },
      issuer: ISSUER,
      audience: AUDIENCE,
      subject: 'alice',
      ttl: 60,
      grants: [soundGrant],
      now: NOW * 1000,
    });
    expect(await verifier.verify(minted)).toMatchObject({ subject: 'alice', keyId: 'k' });
    const { jwks } = await generateIssuerKey();
    keys.trusted = {
      ceiling: undefined,
      keys: await keysOf(...jwks.keys.map((other) => ({ ...other, kid: 'k' }))),
    };
    keys.epoch += 1;
    expect(await reasonOf(verifier.verify(minted))).toBe('TOKEN_INVALID');
  });
});
