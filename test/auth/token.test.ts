/** What the verifier remembers, and for how long. What it refuses stands in the token vectors. */
import { beforeAll, describe, expect, it } from '@jest/globals';
import type { JWK } from 'jose';
import { parseClaims, writeClaims } from '../../src/auth/claims.js';
import { parseJwks } from '../../src/auth/jwks.js';
import type { Keys, TrustedIssuer } from '../../src/auth/keys.js';
import { TokenVerifier } from '../../src/auth/token.js';
import { GranttyError } from '../../src/core/errors.js';
import type { Ceiling } from '../../src/core/grant.js';
import type { Selector } from '../../src/core/selector.js';
import { AUDIENCE, ISSUER, key, NOW, soundGrant, withClaims } from './vectorForge.js';

/** Keys whose epoch the test sets. */
class FakeKeys implements Keys {
  epoch = 1;
  trusted: TrustedIssuer | undefined;
  whenAsked: () => void = () => undefined;
  readonly #others = new Map<string, TrustedIssuer>();

  issuer(name: string): TrustedIssuer | undefined {
    this.whenAsked();
    return name === ISSUER ? this.trusted : this.#others.get(name);
  }

  /** Another issuer, of whose one key only the name matters. */
  add(issuer: string, kid: string, ceiling?: Ceiling): void {
    const [key] = vectorKeys.keys.values();
    if (key) this.#others.set(issuer, { ceiling, keys: new Map([[kid, { ...key, kid }]]) });
  }

  retire(issuer: string, kid: string): void {
    const known = this.#others.get(issuer);
    const keys = [...(known?.keys ?? [])].filter(([id]) => id !== kid);
    this.#others.set(issuer, { ceiling: known?.ceiling, keys: new Map(keys) });
    this.epoch += 1;
  }
}

const KID = 'ed';

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
    const { verifier, advance } = setUp();
    const first = await verifier.verify(token);
    advance(59.9);
    expect(await verifier.verify(token)).toBe(first);
    advance(0.1);
    const second = await verifier.verify(token);
    expect(second).toEqual(first);
    expect(second).not.toBe(first);
  });

  it('is verified again when the clock has stepped back', async () => {
    const { verifier, advance } = setUp();
    const first = await verifier.verify(token);
    advance(-20);
    expect(await verifier.verify(token)).toBe(first);
    advance(20 - 3600);
    expect(await reasonOf(verifier.verify(token))).toBe('TOKEN_INVALID');
  });

  it('expires although it is remembered', async () => {
    const { verifier, advance } = setUp();
    advance(570);
    const first = await verifier.verify(token);
    advance(29);
    expect(await verifier.verify(token)).toBe(first);
    advance(1);
    expect(await reasonOf(verifier.verify(token))).toBe('TOKEN_EXPIRED');
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
  });

  it('is not remembered when it was refused', async () => {
    const { verifier, advance } = setUp();
    const early = withClaims({ iat: NOW + 40, nbf: NOW + 40 });
    expect(await reasonOf(verifier.verify(early))).toBe('TOKEN_INVALID');
    advance(10);
    await verifier.verify(early);
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
  const ROOT = 'https://root.test';
  const act = { sub: 'reviewer', act: { sub: 'coder', iss: ISSUER } };
  const lineage = [
    { iss: ROOT, jti: 'root', kid: 'root-key', iat: 1 },
    { iss: ISSUER, jti: 'child', kid: KID, iat: 2 },
  ];
  const delegated = {
    act,
    lineage,
    max_depth: 3,
    authorization_details: [{ ...soundGrant, from: [{ id: 'a', max_terminals: 3 }, { id: 'b' }] }],
  };

  function setUpLine(ceiling?: Ceiling) {
    const line = setUp({ ownIssuer: ISSUER });
    line.keys.add(ROOT, 'root-key', ceiling);
    return line;
  }

  it('count when the own issuer makes them', async () => {
    const verified = await setUpLine().verifier.verify(withClaims(delegated));
    expect(verified.actors).toEqual(['reviewer', 'coder']);
    expect(verified.lineage).toEqual([
      { issuer: ROOT, jti: 'root', keyId: 'root-key', issuedAt: 1 },
      { issuer: ISSUER, jti: 'child', keyId: KID, issuedAt: 2 },
    ]);
    expect(verified.maxDepth).toBe(3);
    expect(verified.grants[0]?.from).toEqual([{ id: 'a', maxTerminals: 3 }, { id: 'b' }]);
  });

  it('are written as they were read', async () => {
    const verified = await setUpLine().verifier.verify(withClaims(delegated));
    const { hash: _hash, keyId: _keyId, ...claims } = verified;
    expect(parseClaims(writeClaims(claims), true)).toEqual(claims);
  });

  it('put the grants below the ceiling of the issuer at the root', async () => {
    const ceiling: Ceiling = { owners: [], actions: ['terminal.read'] };
    const { grants } = await setUpLine(ceiling).verifier.verify(withClaims(delegated));
    expect(grants.map((grant) => grant.ceiling)).toEqual([ceiling]);
  });

  it('do not outlive a key of the line', async () => {
    const { keys, verifier } = setUpLine();
    await verifier.verify(withClaims(delegated));
    keys.retire(ROOT, 'root-key');
    expect(await reasonOf(verifier.verify(withClaims(delegated)))).toBe('TOKEN_INVALID');
  });

  it('need the issuer at the root to be believed', async () => {
    const { verifier } = setUp({ ownIssuer: ISSUER });
    expect(await reasonOf(verifier.verify(withClaims(delegated)))).toBe('TOKEN_INVALID');
  });

  it.each([
    delegated,
    { act },
    { lineage },
    { max_depth: 3 },
    { act: undefined, lineage: null },
    { authorization_details: delegated.authorization_details },
  ])('refuse the token of any other issuer: %j', async (claims) => {
    const { verifier } = setUp({ ownIssuer: 'https://grantty.test' });
    expect(await reasonOf(verifier.verify(withClaims(claims)))).toBe('TOKEN_INVALID');
  });

  it.each<object>([
    { act: 'coder' },
    { act: {} },
    { act: { sub: 1 } },
    { act: { sub: 'a', act: null } },
    { act: { sub: 'a' } },
    { act: nested(17), lineage: Array.from({ length: 17 }, () => lineage[0]), max_depth: 17 },
    { lineage: {} },
    { lineage: [{ iss: 'a' }] },
    { lineage: [lineage[0]] },
    { lineage: [lineage[0], { ...lineage[1], exp: 1 }] },
    { lineage: [lineage[0], { ...lineage[1], iat: '1' }] },
    { max_depth: undefined },
    { max_depth: 1 },
    { authorization_details: [soundGrant] },
    { authorization_details: [{ ...soundGrant, from: [{ id: 'a' }] }] },
    { authorization_details: [{ ...soundGrant, from: [{ id: 'a' }, { id: 'b', more: 1 }] }] },
  ])('are checked even so: %j', async (claims) => {
    const { verifier } = setUpLine();
    expect(await reasonOf(verifier.verify(withClaims({ ...delegated, ...claims })))).toBe(
      'TOKEN_INVALID',
    );
  });

  function nested(depth: number): object {
    return depth === 1 ? { sub: 'a' } : { sub: 'a', act: nested(depth - 1) };
  }
});
