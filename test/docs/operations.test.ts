/** docs/operations.md against the configuration: the same keys, the defaults, the tables. */
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { configuration, parseConfiguration } from '../../src/app/config.js';
import { omittableFields } from '../../src/audit/fieldFilter.js';
import { KeySet } from '../../src/auth/keys.js';
import { mintToken } from '../../src/auth/mint.js';
import { TokenVerifier } from '../../src/auth/token.js';

const page = await readFile(new URL('../../docs/operations.md', import.meta.url), 'utf8');
const [full = '', ...fragments] = [...page.matchAll(/^```yaml\n(.*?)^```/gms)].map(
  ([, block = '']) => block,
);

type Json = { readonly [key: string]: unknown };
const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** `a.b` for each key, through lists. */
function keysOf(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => keysOf(item, path));
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, item]) => [
    `${path}${key}`,
    ...keysOf(item, `${path}${key}.`),
  ]);
}

/** The same of a JSON schema. */
function schemaKeys(schema: unknown, path = ''): string[] {
  if (!isObject(schema)) return [];
  const { properties, items, anyOf, oneOf } = schema;
  const alternatives = [anyOf, oneOf].flatMap((list) => (Array.isArray(list) ? list : []));
  return [
    ...(isObject(properties)
      ? Object.entries(properties).flatMap(([key, one]) => [
          `${path}${key}`,
          ...schemaKeys(one, `${path}${key}.`),
        ])
      : []),
    ...schemaKeys(items, path),
    ...alternatives.flatMap((one) => schemaKeys(one, path)),
  ];
}

/** What is required, and a mode whose keys have defaults. */
const minimal = `
audience: a
tls: {cert: c, key: k}
issuers: [{issuer: i, jwks_file: j}]
run_as: {mode: by-uid}
`;

describe('the recipe for a key', () => {
  it('makes one that mints tokens, and a key set that verifies them and holds nothing secret', async () => {
    const cwd = await mkdtemp(join(tmpdir(), 'grantty-recipe-'));
    try {
      const [, script = ''] = /^node -e '(.*?)'$/ms.exec(page) ?? [];
      execFileSync(process.execPath, ['-e', script], { cwd });
      const jwks = await readFile(join(cwd, 'issuer.jwks.json'), 'utf8');
      expect(JSON.parse(jwks).keys[0]).not.toHaveProperty('d');
      const keys = new KeySet([{ issuer: 'i', jwksFile: join(cwd, 'issuer.jwks.json') }]);
      await keys.reload();
      const token = await mintToken({
        key: JSON.parse(await readFile(join(cwd, 'issuer.jwk'), 'utf8')),
        issuer: 'i',
        audience: 'a',
        subject: 's',
        ttl: 60,
        grants: [],
        now: Date.now(),
      });
      const verifier = new TokenVerifier({ keys, audience: 'a', clock: Date.now });
      expect(await verifier.verify(token)).toMatchObject({ subject: 's' });
    } finally {
      await rm(cwd, { recursive: true });
    }
  });
});

describe('the commented configuration', () => {
  it('is sound, and so is each fragment with it', () => {
    expect(() => parseConfiguration('/f', full)).not.toThrow();
    for (const fragment of fragments) {
      const merged = JSON.stringify({ ...parse(full), ...parse(fragment) });
      expect(() => parseConfiguration('/f', merged)).not.toThrow();
    }
  });

  it('has every key that there is, and no other', () => {
    const known = new Set(schemaKeys(z.toJSONSchema(configuration, { io: 'input' })));
    expect(known.size).toBeGreaterThan(20);
    const named = new Set([full, ...fragments].flatMap((block) => keysOf(parse(block))));
    expect([...named].sort()).toEqual([...known].sort());
  });

  it('shows the defaults of all keys that have one', () => {
    const shown = parseConfiguration('/f', full);
    const defaults = parseConfiguration('/f', minimal);
    for (const section of ['log', 'limits', 'run_as'] as const) {
      // A key without a default is shown with an example.
      expect({ section, ...shown[section] }).toMatchObject({ section, ...defaults[section] });
    }
    expect(shown.delegation.max_depth).toBe(defaults.delegation.max_depth);
    expect(shown.audit.omit).toEqual(defaults.audit.omit);
  });

  it('says the ranges of numbers as they are', () => {
    const lines = [full, ...fragments].join('\n').split('\n');
    const checked: string[] = [];
    const check = (schema: unknown, name = '') => {
      if (!isObject(schema)) return;
      const { minimum, maximum, properties, items, oneOf, anyOf } = schema;
      const line = lines.find((one) => one.trim().startsWith(`${name}: `));
      if (minimum !== undefined) {
        checked.push(name);
        expect(line).toContain(`# ${minimum}-${maximum}`);
      }
      if (isObject(properties)) {
        for (const [key, one] of Object.entries(properties)) check(one, key);
      }
      check(items, name);
      for (const one of [oneOf, anyOf].flat()) check(one, name);
    };
    check(z.toJSONSchema(configuration, { io: 'input' }));
    expect(checked).toEqual(expect.arrayContaining(['max_depth', 'min_uid', 'uid', 'connections']));
  });

  it('names every field that the trail may leave out', () => {
    const [, audit = ''] = page.split('## Audit');
    for (const field of omittableFields) expect(audit).toContain(`\`${field}\``);
  });
});
