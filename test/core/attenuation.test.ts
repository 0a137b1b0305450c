/** The law of delegation: whatever a part of a grant lets its bearer do, the whole does too. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { widening } from '../../src/core/attenuation.js';
import { constraintNames } from '../../src/core/constraints.js';
import { coverage, findGrant, type Grant, parseGrants } from '../../src/core/grant.js';
import { accessRequest, NOW, writtenGrants } from './grantArbitraries.js';

const RUNS = { numRuns: 2000 };

type Written = Readonly<Record<string, unknown>>;

const base = {
  type: 'urn:grantty:terminal:v1',
  id: 'g',
  actions: ['terminal.create', 'terminal.write', 'terminal.signal'],
  resource: { owner: '1000', agent: 'c*', session: '*', terminal: '*' },
};

function grantOf(written: object): Grant {
  const [grant] = parseGrants([{ ...base, ...written }]);
  if (grant === undefined) throw new Error('no grant');
  return grant;
}

/** Each member of a grant and of its constraints, taken from one or the other of two. */
function mixed(a: Written, b: Written, choose: readonly boolean[]): Written {
  const pick = (x: Written, y: Written, keys: readonly string[], from: number): Written =>
    Object.fromEntries(
      keys.flatMap((key, index) => {
        const chosen = choose[from + index] ? x : y;
        return Object.hasOwn(chosen, key) ? [[key, chosen[key]]] : [];
      }),
    );
  const resource = pick(
    a.resource as Written,
    b.resource as Written,
    ['owner', 'agent', 'session', 'terminal'],
    0,
  );
  const constraints = pick(
    (a.constraints ?? {}) as Written,
    (b.constraints ?? {}) as Written,
    constraintNames,
    4,
  );
  return { ...base, actions: (choose[12] ? a : b).actions, resource, constraints };
}

/** Two grants that have so much in common that one is a part of the other now and then. */
const pairs = fc
  .tuple(
    writtenGrants.filter((grants) => grants.length >= 2),
    fc.array(fc.boolean(), { minLength: 13, maxLength: 13 }),
  )
  .map(([[a, b], choose]) => ({
    whole: grantOf(a as Written),
    part: grantOf(mixed(a as Written, b as Written, choose)),
  }));

/** The same grant with less of everything, so that most of these are parts. */
const parts = fc
  .record({
    whole: writtenGrants.filter((grants) => grants.length > 0),
    actions: fc.infiniteStream(fc.boolean()),
    lists: fc.infiniteStream(fc.boolean()),
    number: fc.nat(1000),
  })
  .map(({ whole: [first], actions, lists, number }) => {
    const whole = first as Written;
    const constraints = (whole.constraints ?? {}) as Written;
    const fewer = (items: readonly unknown[]) => items.filter(() => lists.next().value);
    const less = Object.fromEntries(
      Object.entries(constraints).map(([name, value]) => {
        if (Array.isArray(value)) return [name, fewer(value)];
        if (typeof value !== 'number') return [name, lists.next().value ? value : 'refuse'];
        return [name, Math.max(name === 'write_bytes_per_second' ? 1 : 0, value - number)];
      }),
    );
    const part = {
      ...whole,
      actions: (whole.actions as unknown[]).filter(() => actions.next().value),
      constraints: less,
    };
    return { whole: grantOf(whole), part: grantOf(part) };
  });

describe('a part of a grant', () => {
  it('lets its bearer do nothing that the whole does not', () => {
    let asked = 0;
    fc.assert(
      fc.property(fc.oneof(pairs, parts), accessRequest, ({ whole, part }, request) => {
        if (widening(part, whole) !== undefined) return;
        asked += 1;
        if (coverage(part, request, NOW).covered) {
          expect(coverage(whole, request, NOW).covered).toBe(true);
        }
      }),
      { numRuns: 6000 },
    );
    expect(asked).toBeGreaterThan(1000);
  });

  it('does so too among the other grants of its token, signal bytes included', () => {
    const tokens = fc.array(fc.oneof(pairs, parts), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(tokens, accessRequest, (lines, request) => {
        const narrowed = lines.filter(({ part, whole }) => widening(part, whole) === undefined);
        const children = narrowed.map(({ part }) => part);
        const parents = narrowed.map(({ whole }) => whole);
        if (findGrant(children, request, NOW)) {
          expect(findGrant(parents, request, NOW)).toBeDefined();
        }
      }),
      RUNS,
    );
  });

  it('is found to be one where it only has less', () => {
    fc.assert(
      fc.property(parts, ({ whole, part }) => {
        expect(widening(part, whole)).toBeUndefined();
      }),
      RUNS,
    );
  });

  it('may be the whole, and parts of parts are parts', () => {
    fc.assert(
      fc.property(pairs, pairs, ({ whole, part }, other) => {
        expect(widening(whole, whole)).toBeUndefined();
        const [a, b, c] = [part, whole, other.part];
        if (widening(a, b) === undefined && widening(b, c) === undefined) {
          expect(widening(a, c)).toBeUndefined();
        }
      }),
      RUNS,
    );
  });
});

describe('each constraint', () => {
  const absent = {};
  it.each<[string, object, object, string | undefined]>([
    ['an end where there was none', { expires_at: 9 }, absent, undefined],
    ['no end where there was one', absent, { expires_at: 9 }, 'expires_at'],
    ['a later end', { expires_at: 10 }, { expires_at: 9 }, 'expires_at'],
    ['the same end', { expires_at: 9 }, { expires_at: 9 }, undefined],
    ['fewer terminals', { max_terminals: 0 }, { max_terminals: 1 }, undefined],
    ['more terminals', { max_terminals: 2 }, { max_terminals: 1 }, 'max_terminals'],
    ['any number of terminals', absent, { max_terminals: 1 }, 'max_terminals'],
    ['no command', { commands: [] }, { commands: [['/bin/sh']] }, undefined],
    ['any command', absent, { commands: [] }, 'commands'],
    ['a longer command', { commands: [['/a', 'b']] }, { commands: [['/a']] }, 'commands'],
    ['a path below', { cwd_under: ['/w/a'] }, { cwd_under: ['/w'] }, undefined],
    ['a path beside', { cwd_under: ['/wa'] }, { cwd_under: ['/w'] }, 'cwd_under'],
    ['a path above', { cwd_under: ['/'] }, { cwd_under: ['/w'] }, 'cwd_under'],
    ['no path', { cwd_under: [] }, { cwd_under: ['/w'] }, undefined],
    ['any path', absent, { cwd_under: [] }, 'cwd_under'],
    ['a variable below a prefix', { env_allow: ['MY_X'] }, { env_allow: ['MY_*'] }, undefined],
    ['a longer prefix', { env_allow: ['MY_X*'] }, { env_allow: ['MY_*'] }, undefined],
    ['a shorter prefix', { env_allow: ['M*'] }, { env_allow: ['MY_*'] }, 'env_allow'],
    [
      'a protected variable below *',
      { env_allow: ['LD_PRELOAD'] },
      { env_allow: ['*'] },
      'env_allow',
    ],
    ['a variable that is free', { env_allow: ['LANG', 'LC_*'] }, absent, undefined],
    ['no variable', absent, { env_allow: ['*'] }, undefined],
    ['a signal more', { signals: ['SIGINT', 'SIGTERM'] }, { signals: ['SIGINT'] }, 'signals'],
    ['any signal', absent, { signals: [] }, 'signals'],
    ['signal bytes', { signal_bytes: 'allow' }, absent, 'signal_bytes'],
    ['no signal bytes', absent, { signal_bytes: 'allow' }, undefined],
    [
      'a greater rate',
      { write_bytes_per_second: 2 },
      { write_bytes_per_second: 1 },
      'write_bytes_per_second',
    ],
    ['any rate', absent, { write_bytes_per_second: 1 }, 'write_bytes_per_second'],
  ])('judges %s', (_, part, whole, wider) => {
    expect(widening(grantOf({ constraints: part }), grantOf({ constraints: whole }))).toBe(wider);
  });

  it.each([
    ['1000', '*', true],
    ['0', '*', false],
    ['0', '0*', false],
    ['0', '0', true],
    ['00', '0*', true],
    ['0*', '0*', true],
    ['10*', '1*', true],
    ['1*', '10*', false],
    ['*', '1*', false],
    ['1000*', '1000', false],
    ['1000', '1000*', true],
  ])('judges the owner %s below %s', (inner, outer, within) => {
    const owned = (owner: string) => grantOf({ resource: { ...base.resource, owner } });
    const expected = within ? undefined : 'resource.owner';
    expect(widening(owned(inner), owned(outer))).toBe(expected);
  });
});
