/** Keys of issuers from files: what is refused, passed over, kept and replaced. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { exportJWK } from 'jose';
import { parseJwks } from '../../src/auth/jwks.js';
import { KeySet, type TrustedIssuer } from '../../src/auth/keys.js';
import { generateIssuerKey } from '../../src/auth/mint.js';
import { errorCode, GranttyError } from '../../src/core/errors.js';
import type { Ceiling } from '../../src/core/grant.js';
import { key, otherKey } from './vectorForge.js';

const ed = { ...key.publicJwk, kid: 'ed' };
const next = { ...otherKey.publicJwk, kid: 'next' };

function rsa(bits: number) {
  return generateKeyPairSync('rsa', { modulusLength: bits }).publicKey.export({ format: 'jwk' });
}

function ec(namedCurve: string) {
  return generateKeyPairSync('ec', { namedCurve }).publicKey.export({ format: 'jwk' });
}

function parse(...keys: readonly unknown[]) {
  return parseJwks(JSON.stringify({ keys }));
}

describe('a set of keys', () => {
  it('binds each key to the algorithms of its kind, or to the one that it names', async () => {
    const keys = await parse(
      ed,
      { ...ed, kid: 'eddsa', alg: 'EdDSA' },
      { ...ed, kid: 'ed25519', alg: 'Ed25519' },
      { ...ec('P-256'), kid: 'ec' },
      { ...rsa(2048), kid: 'rsa' },
    );
    expect(Object.fromEntries([...keys].map(([kid, { algorithms }]) => [kid, algorithms]))).toEqual(
      {
        ed: ['EdDSA', 'Ed25519'],
        eddsa: ['EdDSA'],
        ed25519: ['Ed25519'],
        ec: ['ES256'],
        rsa: ['RS256'],
      },
    );
  });

  it('passes over keys of another use, kind or algorithm', async () => {
    const others = [
      { ...ed, kid: 'a', use: 'enc' },
      { ...ed, kid: 'b', key_ops: ['sign'] },
      { ...ed, kid: 'c', key_ops: 'verify' },
      { ...ed, kid: 'd', alg: 'ES256' },
      { ...rsa(2048), kid: 'e', alg: 'PS256' },
      { ...ec('P-384'), kid: 'f' },
      { kty: 'OKP', crv: 'X25519', x: key.publicJwk.x, kid: 'g' },
      { kty: 'new' },
    ];
    expect([...(await parse(...others, ed)).keys()]).toEqual(['ed']);
    await expect(parse(...others)).rejects.toThrow('no key that could verify');
  });

  it.each([
    ['symmetric', { kty: 'oct', k: 'c2VjcmV0', kid: 'ed' }],
    ['symmetric without its secret', { kty: 'oct', kid: 'ed' }],
    ['private', { ...ed, d: 'c2VjcmV0' }],
    ['private, for another use', { ...ed, use: 'enc', d: 'c2VjcmV0' }],
    ['private of an unknown kind', { kty: 'new', d: 'c2VjcmV0' }],
    ['RSA with a prime', { ...rsa(2048), kid: 'rsa', p: 'c2VjcmV0' }],
  ])('is refused with a key that is %s, and does not quote it', async (_, secret) => {
    const error: unknown = await parse(ed, secret).catch((thrown: unknown) => thrown);
    expect(String(error)).toContain('keys[1]: is a private or symmetric key');
    expect(String(error)).not.toContain('c2VjcmV0');
  });

  it.each<[string, unknown, string]>([
    ['no object', 1, 'the set: must be an object'],
    ['no keys', {}, 'keys: must be an array'],
    ['keys that are no array', { keys: ed }, 'keys: must be an array'],
    ['an empty array', { keys: [] }, 'no key that could verify'],
    ['a key that is no object', { keys: ['ed'] }, 'keys[0]: must be an object'],
    ['a key without kid', { keys: [{ ...ed, kid: undefined }] }, 'keys[0].kid: must be a string'],
    ['a kid that is a number', { keys: [{ ...ed, kid: 1 }] }, 'keys[0].kid: must be a string'],
    ['an empty kid', { keys: [{ ...ed, kid: '' }] }, 'keys[0].kid: must not be empty'],
    [
      'two keys of one kid',
      { keys: [ed, { ...next, kid: 'ed' }] },
      'keys[1].kid: is that of another',
    ],
    ['a key that is too short', { keys: [{ ...ed, x: 'AAAA' }] }, 'keys[0]: is not a sound key'],
    [
      'a point that is not on the curve',
      { keys: [{ ...ec('P-256'), y: 'A'.repeat(43), kid: 'k' }] },
      'keys[0]: is not a sound key',
    ],
    ['an RSA key of 1024 bits', { keys: [{ ...rsa(1024), kid: 'k' }] }, 'at least 2048 bits'],
  ])('is refused with %s', async (_, set, message) => {
    await expect(parseJwks(JSON.stringify(set))).rejects.toThrow(message);
  });

  it('is refused when it is no JSON or has a member twice', async () => {
    await expect(parseJwks('{')).rejects.toThrow('not sound JSON');
    await expect(parseJwks(`{"keys":[],"keys":[${JSON.stringify(ed)}]}`)).rejects.toThrow(
      'not sound JSON',
    );
  });

  it('is what a new issuer key gives', async () => {
    const { jwks, privateJwk } = await generateIssuerKey();
    expect([...(await parse(...jwks.keys)).keys()]).toEqual([privateJwk.kid]);
    expect(JSON.stringify(jwks)).not.toContain(privateJwk.d);
  });
});

describe('the issuers', () => {
  let folder: string;
  const ceiling: Ceiling = { owners: [], actions: ['terminal.read'] };

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'grantty-keys-'));
  });

  afterEach(async () => {
    await rm(folder, { recursive: true });
  });

  const path = (name: string) => join(folder, name);

  function write(name: string, ...keys: readonly unknown[]): Promise<void> {
    return writeFile(path(name), JSON.stringify({ keys }));
  }

  async function twoIssuers(): Promise<KeySet> {
    await write('a.json', ed);
    await write('b.json', { ...next, kid: 'ed' });
    const keys = new KeySet([
      { issuer: 'https://a.test', jwksFile: path('a.json'), ceiling },
      { issuer: 'https://b.test', jwksFile: path('b.json') },
    ]);
    await keys.reload();
    return keys;
  }

  async function publicPart(issuer: TrustedIssuer | undefined): Promise<string | undefined> {
    const found = issuer?.keys.get('ed');
    return found && (await exportJWK(found.key)).x;
  }

  const kids = (keys: KeySet, issuer: string) => [...(keys.issuer(issuer)?.keys.keys() ?? [])];

  it('have keys and ceilings of their own', async () => {
    const keys = await twoIssuers();
    const [a, b] = [keys.issuer('https://a.test'), keys.issuer('https://b.test')];
    expect([a?.ceiling, b?.ceiling]).toEqual([ceiling, undefined]);
    expect([await publicPart(a), await publicPart(b)]).toEqual([ed.x, next.x]);
    expect(keys.issuer('https://c.test')).toBeUndefined();
  });

  it('cannot be used before their keys have been had', async () => {
    const keys = new KeySet([{ issuer: 'https://a.test', jwksFile: path('absent.json') }]);
    const reasonOf = () => {
      try {
        return keys.issuer('https://a.test');
      } catch (error) {
        return error instanceof GranttyError ? error.reason : error;
      }
    };
    expect(reasonOf()).toBe('KEYS_UNAVAILABLE');
    await expect(keys.reload()).rejects.toThrow('absent.json: cannot be read');
    expect(reasonOf()).toBe('KEYS_UNAVAILABLE');
    expect(keys.issuer('https://b.test')).toBeUndefined();
  });

  it('cannot be named twice', () => {
    const issuer = { issuer: 'https://a.test', jwksFile: path('a.json') };
    expect(() => new KeySet([issuer, issuer])).toThrow('twice');
  });

  it('change with their files, when asked to reload', async () => {
    const keys = await twoIssuers();
    const { epoch } = keys;
    await write('a.json', next);
    expect(kids(keys, 'https://a.test')).toEqual(['ed']);
    await keys.reload();
    expect(kids(keys, 'https://a.test')).toEqual(['next']);
    expect(keys.epoch).toBe(epoch + 1);
  });

  it('leave the epoch alone when nothing has changed', async () => {
    const keys = await twoIssuers();
    const { epoch } = keys;
    await keys.reload();
    expect(keys.epoch).toBe(epoch);
  });

  it('keep their keys when a file is unsound, and the others change all the same', async () => {
    const keys = await twoIssuers();
    await write('a.json', { ...ed, d: 'c2VjcmV0' });
    await write('b.json', next);
    const failure: unknown = await keys.reload().catch((thrown: unknown) => thrown);
    expect(String(failure)).toContain('issuer https://a.test');
    expect(String(failure)).toContain('private or symmetric');
    expect(kids(keys, 'https://a.test')).toEqual(['ed']);
    expect(kids(keys, 'https://b.test')).toEqual(['next']);
    await rm(path('a.json'));
    const gone: unknown = await keys.reload().catch((thrown: unknown) => thrown);
    expect(errorCode(((gone as AggregateError).errors[0] as Error).cause)).toBe('ENOENT');
    expect(kids(keys, 'https://a.test')).toEqual(['ed']);
  });

  it('reload one after the other, a failed reload before notwithstanding', async () => {
    const keys = await twoIssuers();
    await writeFile(path('a.json'), 'broken');
    const first = keys.reload();
    const second = first
      .catch(() => undefined)
      .then(() => write('a.json', next))
      .then(() => keys.reload());
    await expect(first).rejects.toThrow('not sound JSON');
    await second;
    expect(kids(keys, 'https://a.test')).toEqual(['next']);
  });
});
