/** The registry of delegations: who descends from whom, and what a repeated request gets. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LineageRegistry } from '../../src/auth/lineageRegistry.js';
import { type TemporaryDir, temporaryDir } from '../store/temporaryDir.js';

const OWN = 'own';
let dir: TemporaryDir;
let path: string;
let now: number;

beforeEach(async () => {
  dir = await temporaryDir();
  path = join(dir.path, 'delegations.jsonl');
  now = 1_700_000_000_000;
});

afterEach(async () => {
  await dir[Symbol.asyncDispose]();
});

const open = () => LineageRegistry.open(path, () => now);
const root = { issuer: 'i', jti: 'root' };
const named = (jti: string) => ({ issuer: OWN, jti });
const end = () => Math.floor(now / 1000) + 3600;

/** root → a → b → c, and root → d. */
async function line(): Promise<LineageRegistry> {
  const registry = await open();
  const steps = [
    [root, 'a'],
    [named('a'), 'b'],
    [named('b'), 'c'],
    [root, 'd'],
  ] as const;
  for (const [parent, jti] of steps) {
    await registry.register({ parent, child: named(jti), expiresAt: end() });
  }
  return registry;
}

describe('the registry', () => {
  it('knows who descends from whom, over all steps, also after a restart', async () => {
    await (await line())[Symbol.asyncDispose]();
    await using registry = await open();
    expect(registry.descends(named('c'), root)).toBe(true);
    expect(registry.descends(named('c'), named('a'))).toBe(true);
    expect(registry.parentOf(named('c'))).toEqual(named('b'));
    for (const [token, ancestor] of [
      [named('a'), named('b')],
      [named('d'), named('a')],
      [root, named('a')],
      [named('a'), named('a')],
      [named('x'), root],
      [{ issuer: 'i', jti: 'a' }, root],
    ] as const) {
      expect(registry.descends(token, ancestor)).toBe(false);
    }
    expect(
      registry
        .descendants(root)
        .map(({ jti }) => jti)
        .sort(),
    ).toEqual(['a', 'b', 'c', 'd']);
    expect(registry.descendants(named('b'))).toEqual([named('c')]);
  });

  it('counts no token that has expired, and forgets it a while later', async () => {
    await (await line())[Symbol.asyncDispose]();
    now += 3600_000;
    const later = await open();
    expect(later.descendants(root)).toEqual([]);
    expect(later.descends(named('c'), root)).toBe(true);
    await later[Symbol.asyncDispose]();
    now += 60_000;
    await using muchLater = await open();
    expect(muchLater.descends(named('c'), root)).toBe(false);
  });

  it('remembers for ten minutes what a request was answered with, also after a restart', async () => {
    const first = await open();
    const request = { key: 'k', bodyHash: 'h', claims: { jti: 'a' } };
    await first.register({ parent: root, child: named('a'), expiresAt: end(), request });
    expect(first.answered('k')).toMatchObject({ bodyHash: 'h', claims: { jti: 'a' } });
    expect(first.answered('other')).toBeUndefined();
    await first[Symbol.asyncDispose]();
    now += 10 * 60_000 - 1;
    await using second = await open();
    expect(second.answered('k')).toMatchObject({ claims: { jti: 'a' } });
    now += 1;
    expect(second.answered('k')).toBeUndefined();
  });

  it('cut at any byte of its last line holds those before it', async () => {
    await (await line())[Symbol.asyncDispose]();
    const text = (await readFile(path, 'utf8')).replaceAll('\0', '');
    const last = text.lastIndexOf('\n', text.length - 2) + 1;
    for (let length = last; length < text.length; length += 7) {
      await writeFile(path, text.slice(0, length));
      await using registry = await open();
      expect(registry.descends(named('c'), root)).toBe(true);
      expect(registry.descends(named('d'), root)).toBe(false);
    }
  });

  it('does not pass over an unsound line', async () => {
    await writeFile(path, '{"child":{"iss":"own"}}\n');
    await expect(open()).rejects.toThrow('delegations.jsonl:1 is not a delegation');
  });
});
