/** Budgets: live terminals and bytes a second, charged to holders. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  type BudgetHolder,
  holdersOf,
  RateBudgets,
  TerminalBudgets,
} from '../../src/auth/budgets.js';

const holder = (grantId: string, subject = 'alice'): BudgetHolder => ({
  issuer: 'https://issuer.test',
  subject,
  grantId,
});
const root = holder('root');
const child = holder('child');

describe('live terminals', () => {
  it('are taken up to the limit and come back one by one', () => {
    const budgets = new TerminalBudgets();
    const charges = [{ holder: root, limit: 2 }];
    expect([1, 2, 3].map(() => budgets.take(charges))).toEqual([true, true, false]);
    budgets.giveBack([root]);
    expect([1, 2].map(() => budgets.take(charges))).toEqual([true, false]);
  });

  it('are taken from all holders or from none', () => {
    const budgets = new TerminalBudgets();
    const charges = [
      { holder: root, limit: 1 },
      { holder: child, limit: 5 },
    ];
    expect(budgets.take(charges)).toBe(true);
    expect(budgets.take(charges)).toBe(false);
    expect([budgets.live(root), budgets.live(child)]).toEqual([1, 1]);
  });

  it('of ten children stay within the budget of their parent', () => {
    const budgets = new TerminalBudgets();
    const taken = Array.from({ length: 10 }, (_, index) =>
      budgets.take([
        { holder: root, limit: 3 },
        { holder: holder(`child-${index}`), limit: 3 },
      ]),
    );
    expect(taken.filter(Boolean)).toHaveLength(3);
  });

  it('count for each subject and grant apart', () => {
    const budgets = new TerminalBudgets();
    const holders = [root, child, holder('root', 'bob'), { ...root, issuer: 'https://other.test' }];
    expect(holders.map((one) => budgets.take([{ holder: one, limit: 1 }]))).toEqual(
      holders.map(() => true),
    );
  });

  it('that lived before count even beyond the limit', () => {
    const budgets = new TerminalBudgets();
    const createdBy = { issuer: root.issuer, subject: root.subject, grants: ['root', 'child'] };
    for (const _ of [1, 2, 3]) budgets.add(holdersOf(createdBy));
    expect([budgets.live(root), budgets.live(child)]).toEqual([3, 3]);
    budgets.giveBack([root]);
    expect(budgets.take([{ holder: root, limit: 2 }])).toBe(false);
  });

  it('are none under a limit of 0', () => {
    expect(new TerminalBudgets().take([{ holder: root, limit: 0 }])).toBe(false);
  });

  it('cannot be given back more often than taken', () => {
    const budgets = new TerminalBudgets();
    budgets.giveBack([root]);
    expect(budgets.live(root)).toBe(0);
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
