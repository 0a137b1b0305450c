/** Budgets: live terminals and bytes a second, charged to holders. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  type BudgetHolder,
  holderOf,
  inputCharges,
  isChargedTo,
  RateBudgets,
  terminalCharges,
} from '../../src/auth/budgets.js';
import type { VerifiedToken } from '../../src/auth/token.js';
import type { Grant, GrantAncestor } from '../../src/core/grant.js';

const ROOT = 'https://issuer.test';
const OWN = 'https://own.test';

const holder = (grantId: string): BudgetHolder => ({
  issuer: ROOT,
  subject: 'alice',
  grants: [grantId],
});
const root = holder('root');
const child = holder('child');

/** A token as budgets see it: delegated to these actors in turn, the first from the root. */
function token(actors: readonly string[] = [], subject = 'alice'): VerifiedToken {
  const lineage = actors.map((_, depth) => ({
    issuer: depth === 0 ? ROOT : OWN,
    jti: `${depth}`,
    keyId: 'k',
    issuedAt: 1,
  }));
  const issuer = actors.length === 0 ? ROOT : OWN;
  return { issuer, subject, actors: [...actors].reverse(), lineage } as unknown as VerifiedToken;
}

function grant(id: string, limit?: number, ...from: readonly GrantAncestor[]): Grant {
  const constraints = { maxTerminals: limit, writeBytesPerSecond: limit };
  return { id, constraints, ...(from.length > 0 && { from }) } as unknown as Grant;
}

describe('the use of a grant', () => {
  it('is charged to the grant of issuer and subject, whatever the token', () => {
    const charges = terminalCharges(token(), grant('g', 3));
    expect(charges).toEqual([
      { holder: { issuer: ROOT, subject: 'alice', grants: ['g'] }, limit: 3 },
    ]);
    expect(terminalCharges(token(), grant('g'))).toEqual([]);
  });

  it('is charged to each grant that it is a part of, where there is a limit', () => {
    const from = [
      { id: 'a', maxTerminals: 3 },
      { id: 'b', writeBytesPerSecond: 9 },
    ];
    const line = token(['x', 'y']);
    const own = { issuer: ROOT, subject: 'alice', grants: ['a', 'b', 'c'], actors: ['x', 'y'] };
    expect(terminalCharges(line, grant('c', 2, ...from))).toEqual([
      { holder: { issuer: ROOT, subject: 'alice', grants: ['a'] }, limit: 3 },
      { holder: own, limit: 2 },
    ]);
    expect(inputCharges(line, grant('c', 2, ...from))).toEqual([
      {
        holder: { issuer: ROOT, subject: 'alice', grants: ['a', 'b'], actors: ['x'] },
        limit: 9,
      },
      { holder: own, limit: 2 },
    ]);
  });

  it('counts against each of these holders as a record tells it, and against no other', () => {
    const from = [
      { id: 'a', maxTerminals: 3 },
      { id: 'b', maxTerminals: 3 },
    ];
    const record = holderOf(token(['x', 'y']), grant('c', 3, ...from));
    for (const { holder } of terminalCharges(token(['x', 'y']), grant('c', 3, ...from))) {
      expect(isChargedTo(record, holder)).toBe(true);
    }
    const others = [
      holderOf(token(['x', 'z']), grant('c', 3, ...from)),
      holderOf(token(['x', 'y']), grant('d', 3, ...from)),
      holderOf(token(['z']), grant('b', 3, { id: 'a' })),
      holderOf(token(), grant('b')),
      holderOf(token([], 'bob'), grant('a')),
      { ...holderOf(token(), grant('a')), issuer: OWN },
      holderOf(token(['x', 'y', 'z']), grant('d', 3, ...from, { id: 'c' })),
    ];
    for (const holder of others) expect(isChargedTo(record, holder)).toBe(false);
  });
});

describe('bytes a second', () => {
  function setUp() {
    let now = 1_000;
    const budgets = new RateBudgets(() => now);
    return {
      take: (bytes: number, limit = 100, who = root) =>
        budgets.take([{ holder: who, limit }], bytes),
      budgets,
      advance: (ms: number) => {
        now += ms;
      },
    };
  }

  it('pass until the second is used up, and are told when to come again', () => {
    const { take, advance } = setUp();
    expect([take(60), take(40)]).toEqual([0, 0]);
    expect(take(10)).toBe(100);
    advance(99);
    expect(take(10)).toBe(1);
    advance(1);
    expect(take(10)).toBe(0);
  });

  it('that were refused are not charged', () => {
    const { take, advance } = setUp();
    take(100);
    for (const _ of [1, 2, 3]) expect(take(50)).toBe(500);
    advance(500);
    expect(take(50)).toBe(0);
  });

  it('of a frame larger than a second are taken by a full bucket, and paid for afterwards', () => {
    const { take, advance } = setUp();
    expect(take(1000)).toBe(0);
    expect(take(1)).toBe(9010);
    advance(9_000);
    expect(take(1000)).toBe(1000);
    advance(1_000);
    expect(take(1000)).toBe(0);
  });

  it('do not add up over idle time', () => {
    const { take, advance } = setUp();
    advance(3_600_000);
    expect([take(100), take(1)]).toEqual([0, 10]);
  });

  it('are charged to all holders or to none', () => {
    const { take, budgets } = setUp();
    const charges = [
      { holder: root, limit: 100 },
      { holder: child, limit: 50 },
    ];
    expect(budgets.take(charges, 50)).toBe(0);
    expect(budgets.take(charges, 50)).toBe(1000);
    expect(take(50)).toBe(0);
    expect(take(1)).toBe(10);
  });

  it('follow the rate that the grant has now', () => {
    const { take, advance } = setUp();
    take(100, 100);
    advance(100);
    expect(take(100, 1000)).toBe(0);
  });

  it('wait while the clock steps back, and no longer', () => {
    const { take, advance } = setUp();
    take(100);
    advance(-60_000);
    expect(take(10)).toBe(100);
    advance(100);
    expect(take(10)).toBe(0);
  });

  it('exceed the rate by one frame at most, whatever comes when', () => {
    const step = fc.record({ ms: fc.nat(400), bytes: fc.integer({ min: 1, max: 250 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { take, advance } = setUp();
        let elapsed = 0;
        let taken = 0;
        for (const { ms, bytes } of steps) {
          advance(ms);
          elapsed += ms;
          if (take(bytes) === 0) taken += bytes;
          expect(taken).toBeLessThanOrEqual(100 + elapsed / 10 + 250);
        }
      }),
    );
  });

  it('pass after the time that was told, for a caller who waits', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 500 }), { maxLength: 20 }), (frames) => {
        const { take, advance } = setUp();
        for (const bytes of frames) {
          let waits = 0;
          for (let ms = take(bytes); ms > 0; ms = take(bytes)) {
            advance(ms);
            waits += 1;
          }
          expect(waits).toBeLessThanOrEqual(2);
        }
      }),
    );
  });
});
