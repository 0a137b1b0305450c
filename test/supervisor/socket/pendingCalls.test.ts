/** Calls that wait for their answers, by ids that no two of them share. */
import { describe, expect, it } from '@jest/globals';
import { PendingCalls } from '../../../src/supervisor/socket/pendingCalls.js';
import { MAX_PENDING_REQUESTS } from '../../../src/supervisor/socket/protocol.js';

describe('calls that wait', () => {
  it('are found by their ids, and not by that of one before in the same place', () => {
    const calls = new PendingCalls<string>();
    const first = calls.add('first') ?? 0;
    expect(calls.delete(first)).toBe(true);
    const second = calls.add('second') ?? 0;
    expect([first, second].map((id) => calls.get(id))).toEqual([undefined, 'second']);
    // An answer that comes late finds nobody.
    expect(calls.delete(first)).toBe(false);
    expect(calls.size).toBe(1);
  });

  it('are as many as may wait, and one more when one has gone', () => {
    const calls = new PendingCalls<number>();
    const ids = Array.from({ length: MAX_PENDING_REQUESTS }, (_, n) => calls.add(n) ?? 0);
    expect(new Set(ids).size).toBe(MAX_PENDING_REQUESTS);
    expect(calls.add(0)).toBeUndefined();
    expect(calls.delete(ids[7] ?? 0)).toBe(true);
    expect(calls.get(calls.add(-1) ?? 0)).toBe(-1);
    expect(calls.get(ids[8] ?? 0)).toBe(8);
  });

  it('have ids from 1 to 2^32 - 1, also when those of a place have been used up', () => {
    const calls = new PendingCalls<string>();
    const rounds = 2 ** 32 / MAX_PENDING_REQUESTS;
    let last = 0;
    for (let round = 0; round < rounds + 1; round += 1) {
      const id = calls.add('one') ?? 0;
      if (id < 1 || id > 0xffff_ffff || id === last || !calls.delete(id)) {
        throw new Error(`the id ${id} after ${last}`);
      }
      last = id;
    }
    expect(last).toBeLessThan(3 * MAX_PENDING_REQUESTS);
  });

  it('are all taken out at the end', () => {
    const calls = new PendingCalls<string>();
    for (const sink of ['a', 'b', 'c']) calls.add(sink);
    calls.delete(2);
    expect(calls.clear()).toEqual(['a', 'c']);
    expect(calls.size).toBe(0);
  });

  it('keep the id 0 and ids that were never given for nobody', () => {
    const calls = new PendingCalls<string>();
    calls.add('a');
    expect([0, 2, MAX_PENDING_REQUESTS + 1].map((id) => calls.get(id))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });
});
