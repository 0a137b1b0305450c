/** Revocations: what they reach, that they stay, and what a disk can do to them. */
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parseRevoked, RevocationList, writeRevoked } from '../../src/auth/revocationList.js';
import type { VerifiedToken } from '../../src/auth/token.js';
import type { Revoked } from '../../src/core/revoked.js';

let dir: string;
let path: string;
let now = 1_700_000_000_000;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'grantty-revocations-'));
  path = join(dir, 'revocations.jsonl');
  now = 1_700_000_000_000;
});

afterEach(async () => {
  await rm(dir, { recursive: true });
});

const ROOT = { issuer: 'i', jti: 'root', keyId: 'k', issuedAt: 100 };
const CHILD = { issuer: 'own', jti: 'child', keyId: 'o', issuedAt: 200 };
const open = () => RevocationList.open(path, () => now);

function token(own: object, ...lineage: readonly object[]): VerifiedToken {
  return { subject: 's', lineage, ...own } as unknown as VerifiedToken;
}

async function revoked(...all: readonly Revoked[]): Promise<RevocationList> {
  const list = await open();
  await Promise.all(all.map((what) => list.revoke(what).durable));
  await list[Symbol.asyncDispose]();
  return open();
}

describe('a revocation', () => {
  it.each<[string, Revoked, boolean, boolean]>([
    [
      'a token, with what descends from it',
      { kind: 'token', issuer: 'i', jti: 'root' },
      true,
      true,
    ],
    ['a child alone', { kind: 'token', issuer: 'own', jti: 'child' }, false, true],
    ['a token of its own issuer only', { kind: 'token', issuer: 'j', jti: 'root' }, false, false],
    ['what a key has signed', { kind: 'key', issuer: 'i', keyId: 'k' }, true, true],
    ['what the own key has signed', { kind: 'key', issuer: 'own', keyId: 'o' }, false, true],
    [
      'tokens of a subject issued before, with what descends from them',
      { kind: 'subject', issuer: 'i', subject: 's', issuedBefore: 101 },
      true,
      true,
    ],
    [
      'no token issued at that very time',
      { kind: 'subject', issuer: 'i', subject: 's', issuedBefore: 100 },
      false,
      false,
    ],
    [
      'no other subject',
      { kind: 'subject', issuer: 'i', subject: 't', issuedBefore: 101 },
      false,
      false,
    ],
  ])('reaches %s, also after a restart', async (_, what, root, child) => {
    await using list = await revoked(what);
    expect(list.isRevoked(token(ROOT))).toBe(root);
    expect(list.isRevoked(token(CHILD, ROOT))).toBe(child);
  });

  it('is in force before it is durable, and raises the epoch once', async () => {
    await using list = await open();
    const before = list.epoch;
    const first = list.revoke({ kind: 'token', issuer: 'i', jti: 'root' });
    expect(list.isRevoked(token(ROOT))).toBe(true);
    now += 1000;
    const second = list.revoke({ kind: 'token', issuer: 'i', jti: 'root' });
    expect([first.at, second.at]).toEqual([now - 1000, now - 1000]);
    expect(list.epoch).toBe(before + 1);
    await Promise.all([first.durable, second.durable]);
    expect((await readFile(path, 'utf8')).split('\n').length).toBe(2);
  });

  it('of a subject can be moved to a later time, never to an earlier one', async () => {
    const at = (issuedBefore: number): Revoked => ({
      kind: 'subject',
      issuer: 'i',
      subject: 's',
      issuedBefore,
    });
    await using list = await revoked(at(50), at(101), at(70));
    expect(list.isRevoked(token(ROOT))).toBe(true);
  });

  it('is forgotten when no token that it is about can live, but that of a key', async () => {
    const all: Revoked[] = [
      { kind: 'token', issuer: 'i', jti: 'root' },
      { kind: 'subject', issuer: 'i', subject: 's', issuedBefore: 101 },
    ];
    await (await revoked(...all))[Symbol.asyncDispose]();
    now += 2 * 3600_000 - 1;
    const soon = await open();
    expect(soon.isRevoked(token(ROOT))).toBe(true);
    await soon[Symbol.asyncDispose]();
    now += 1;
    const later = await open();
    expect(later.isRevoked(token(ROOT))).toBe(false);
    await later.revoke({ kind: 'key', issuer: 'i', keyId: 'k' }).durable;
    await later[Symbol.asyncDispose]();
    now += 365 * 24 * 3600_000;
    await using muchLater = await open();
    expect(muchLater.isRevoked(token(ROOT))).toBe(true);
  });

  it('is written as it is read', () => {
    const text = fc.string({ minLength: 1, unit: fc.constantFrom('a', 'é', '"', '\\', '{') });
    const what = fc.oneof(
      fc.record({ kind: fc.constant('token' as const), issuer: text, jti: text }),
      fc.record({ kind: fc.constant('key' as const), issuer: text, keyId: text }),
      fc.record({
        kind: fc.constant('subject' as const),
        issuer: text,
        subject: text,
        issuedBefore: fc.nat(),
      }),
    );
    fc.assert(
      fc.property(what, (one) => {
        expect(parseRevoked(writeRevoked(one))).toEqual(one);
      }),
      { numRuns: 1000 },
    );
  });
});

describe('a revocation without a server', () => {
  const what: Revoked = { kind: 'token', issuer: 'i', jti: 'root' };

  it('waits to be put on record until it has been', async () => {
    const offline = await open();
    await offline.revoke(what, true).durable;
    await offline[Symbol.asyncDispose]();
    const server = await open();
    expect(server.unrecorded()).toMatchObject([{ what, at: now }]);
    for (const one of server.unrecorded()) await server.recorded(one);
    expect(server.unrecorded()).toEqual([]);
    await server.revoke({ kind: 'key', issuer: 'i', keyId: 'k' }).durable;
    await server[Symbol.asyncDispose]();
    await using again = await open();
    expect(again.unrecorded()).toEqual([]);
    expect(again.isRevoked(token(ROOT))).toBe(true);
  });
});

describe('the file of revocations', () => {
  const line = '{"revoked":"token","iss":"i","jti":"root","at_ms":1700000000000}\n';

  it('is private', async () => {
    await using _list = await open();
    const { mode } = await import('node:fs').then(({ statSync }) => statSync(path));
    expect(mode & 0o777).toBe(0o600);
  });

  it('cut at any byte of its last line holds those before it', async () => {
    const second = line.replace('root', 'child').replace('"i"', '"own"');
    for (let length = 0; length < second.length; length += 1) {
      await writeFile(path, line + second.slice(0, length));
      await using list = await open();
      expect(list.isRevoked(token(ROOT))).toBe(true);
      expect(list.isRevoked(token(CHILD))).toBe(false);
      await list.revoke({ kind: 'token', issuer: 'x', jti: 'y' }).durable;
      await list[Symbol.asyncDispose]();
      await using again = await open();
      expect(again.isRevoked(token({ ...ROOT, issuer: 'x', jti: 'y' }))).toBe(true);
    }
  });

  it.each(['{}\n', 'nonsense\n', '{"revoked":"tokens","iss":"i","jti":"j","at_ms":1}\n'])(
    'is not passed over where a whole line is unsound: %j',
    async (unsound) => {
      await writeFile(path, line);
      await appendFile(path, unsound);
      await appendFile(path, line);
      await expect(open()).rejects.toThrow('revocations.jsonl:2 is not a revocation');
    },
  );

  it('keeps room for the next ones', async () => {
    await using list = await open();
    for (let index = 0; index < 50; index += 1) {
      await list.revoke({ kind: 'token', issuer: 'i', jti: `${index}-${'x'.repeat(400)}` }).durable;
    }
    const bytes = await readFile(path);
    expect(bytes.length - bytes.indexOf(0)).toBeGreaterThanOrEqual(64 * 1024 - 512);
  });

  it('is written anew when most of it is of no more use', async () => {
    const old = Array.from({ length: 5000 }, (_, index) => line.replace('root', `old-${index}`));
    await writeFile(path, old.join(''));
    now += 3 * 3600_000;
    await using list = await open();
    await list.revoke({ kind: 'token', issuer: 'i', jti: 'root' }).durable;
    const text = (await readFile(path, 'utf8')).replaceAll('\0', '');
    expect(text).toBe(line.replace('1700000000000', String(now)));
    expect(list.isRevoked(token(ROOT))).toBe(true);
  });
});
