/** What a delegated token is made of; what it cannot be is in test/e2e/authority.test.ts. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Claims } from '../../src/auth/claims.js';
import { Delegation, type DelegationOrder } from '../../src/auth/delegation.js';
import { openIssuerKey } from '../../src/auth/issuerKey.js';
import { KeySet } from '../../src/auth/keys.js';
import { LineageRegistry } from '../../src/auth/lineageRegistry.js';
import { generateIssuerKey, mintToken } from '../../src/auth/mint.js';
import { TokenVerifier, type VerifiedToken } from '../../src/auth/token.js';
import type { GranttyError } from '../../src/core/errors.js';
import { findGrant, type Grant, parseGrants } from '../../src/core/grant.js';
import { accessRequest, NOW, writtenGrants } from '../core/grantArbitraries.js';
import { type TemporaryDir, temporaryDir } from '../store/temporaryDir.js';

const ROOT = 'https://root.test';
const OWN = 'https://own.test';
const AUDIENCE = 'a';
const now = NOW * 1000;

const grant = {
  type: 'urn:grantty:terminal:v1',
  id: 'g',
  actions: ['terminal.read', 'terminal.kill'],
  resource: { owner: '1000', agent: '*', session: '*', terminal: '*' },
};

let dir: TemporaryDir;
let delegation: Delegation;
let registry: LineageRegistry;
let verifier: TokenVerifier;
let parent: VerifiedToken;

beforeAll(async () => {
  dir = await temporaryDir();
  const rootKey = await generateIssuerKey();
  const own = await openIssuerKey(join(dir.path, 'key'), OWN, () => false);
  registry = await LineageRegistry.open(join(dir.path, 'lines'), () => now);
  delegation = new Delegation(own, registry, 8);
  const keys = new KeySet(
    [
      {
        issuer: ROOT,
        jwks: rootKey.jwks,
        ceiling: { owners: [], actions: ['terminal.read'] },
      },
      { issuer: OWN, jwks: own.jwks },
    ],
    () => now,
  );
  await keys.reload();
  verifier = new TokenVerifier({ keys, audience: AUDIENCE, ownIssuer: OWN, clock: () => now });
  const token = await mintToken({
    key: rootKey.privateJwk,
    issuer: ROOT,
    audience: AUDIENCE,
    subject: 'alice',
    ttl: 3600,
    now: now + 20_000,
    grants: [grant],
  });
  parent = await verifier.verify(token);
});

afterAll(async () => {
  await registry[Symbol.asyncDispose]();
  await dir[Symbol.asyncDispose]();
});

function partsOf(...written: readonly object[]): DelegationOrder['grants'] {
  return parseGrants(written).map((one) => ({ grant: one, parentId: 'g' }));
}

const signed = (claims: Claims) => delegation.sign(claims, undefined, async () => {});

describe('a delegated token', () => {
  it('is taken by the verifier that it was made for, with all that it comes from', async () => {
    const order = { actor: 'helper', grants: partsOf({ ...grant, id: 'h' }) };
    const { text, hash } = await signed(delegation.claimsFor(parent, order, now));
    const child = await verifier.verify(text);
    expect(child).toMatchObject({
      issuer: OWN,
      subject: 'alice',
      clientId: parent.clientId,
      audience: AUDIENCE,
      actors: ['helper'],
      lineage: [{ issuer: ROOT, jti: parent.jti, keyId: parent.keyId, issuedAt: parent.issuedAt }],
      maxDepth: 8,
      hash,
      // The parent is of the future by its issuer's clock: the child is not good before it.
      notBefore: parent.notBefore,
      issuedAt: NOW,
      expiresAt: NOW + 3600,
    });
    expect(child.grants[0]).toMatchObject({ id: 'h', from: [{ id: 'g' }] });
    expect(child.cnf).toBeUndefined();
    expect(registry.descends(child, parent)).toBe(true);
  });

  it('stays below the ceiling of the issuer at the root', async () => {
    const order = { actor: 'helper', grants: partsOf(grant) };
    const { text } = await signed(delegation.claimsFor(parent, order, now));
    const child = await verifier.verify(text);
    expect(child.grants.map(({ ceiling }) => ceiling)).toEqual([
      { owners: [], actions: ['terminal.read'] },
    ]);
  });

  it('that would be too long to be read is not made', async () => {
    const commands = [['/bin/sh', 'x'.repeat(7000)]];
    const order = { actor: 'helper', grants: partsOf({ ...grant, constraints: { commands } }) };
    const claims = delegation.claimsFor(parent, order, now);
    await expect(signed(claims)).rejects.toThrow('over 8192 bytes');
    expect(registry.descends(claims, parent)).toBe(false);
  });

  it('is put on record once however often it is asked for, and again only after a failure', async () => {
    const order = { actor: 'helper', grants: partsOf(grant) };
    const mark = { key: 'once', bodyHash: 'b' };
    const recorded: string[] = [];
    const ask = (putOnRecord: (jti: string) => void) =>
      delegation.sign(delegation.claimsFor(parent, order, now), mark, async ({ claims }) =>
        putOnRecord(claims.jti),
      );
    const failing = ask(() => {
      throw new Error('no room');
    });
    await expect(failing).rejects.toThrow('no room');
    const tokens = await Promise.all([1, 2, 3].map(() => ask((jti) => recorded.push(jti))));
    expect(new Set(tokens.map(({ text }) => text)).size).toBe(1);
    // It was signed for the request that failed.
    expect(tokens.map(({ repeated }) => repeated)).toEqual([true, true, true]);
    expect(recorded).toEqual([tokens[0]?.claims.jti]);
  });

  it('lets nobody do what its parent does not, whatever is asked for', () => {
    let made = 0;
    const some = writtenGrants.filter((grants) => grants.length > 0);
    fc.assert(
      fc.property(some, some, fc.boolean(), accessRequest, (whole, wanted, isSame, request) => {
        const grants = parseGrants(whole);
        const parentId = grants[0]?.id ?? '';
        const asked = isSame ? grants : parseGrants(wanted);
        let children: readonly Grant[];
        try {
          const order = {
            actor: 'x',
            grants: asked.map((one, index) => ({
              grant: one,
              parentId: isSame ? (grants[index]?.id ?? '') : parentId,
            })),
          };
          children = delegation.claimsFor({ ...parent, grants }, order, now).grants;
        } catch (error) {
          expect((error as GranttyError).reason).toBe('GRANT_MISSING');
          return;
        }
        made += 1;
        if (findGrant(children, request, NOW)) {
          expect(findGrant(grants, request, NOW)).toBeDefined();
        }
      }),
      { numRuns: 3000 },
    );
    expect(made).toBeGreaterThan(1000);
  });
});
