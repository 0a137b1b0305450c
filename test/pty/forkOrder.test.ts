import { begunSince, earlier, forksSoFar } from '../../src/pty/forkOrder.js';
import { openScript } from './openTerminal.js';

describe('the order of forks', () => {
  it('tells what began with a terminal or after it from what is older', async () => {
    const before = forksSoFar() ?? Number.NaN;
    const first = openScript('echo ready; sleep 60');
    const second = openScript('echo ready; sleep 60');
    await Promise.all([first.seen('ready'), second.seen('ready')]);
    expect(first.pty.birth.forks).toBeGreaterThanOrEqual(before);
    const sinceFirst = begunSince(first.pty.birth);
    const sinceSecond = begunSince(second.pty.birth);
    expect([sinceFirst?.(first.pty.pid), sinceFirst?.(second.pty.pid)]).toEqual([true, true]);
    expect([sinceSecond?.(first.pty.pid), sinceSecond?.(second.pty.pid)]).toEqual([false, true]);
    // The number of one of them may have come round and lie among the latest; not of all.
    const older = [1, process.ppid, process.pid];
    expect(older.every((pid) => sinceFirst?.(pid))).toBe(false);
  });

  it('knows that numbers begin anew', () => {
    // As if the latest number were far below the one of the terminal.
    const covers = begunSince({ pid: 4_194_303, forks: forksSoFar() });
    expect([covers?.(4_194_303), covers?.(1), covers?.(4_194_302)]).toEqual([true, true, false]);
  });

  it('is not told where it cannot be known', () => {
    expect(begunSince({ pid: 1, forks: undefined })).toBeUndefined();
    expect(begunSince({ pid: 1, forks: -1_000_000_000 })).toBeUndefined();
    const known = { pid: 7, forks: 3 };
    expect(earlier(known, { pid: 8, forks: 2 })).toEqual({ pid: 8, forks: 2 });
    expect(earlier(known, { pid: 8, forks: 4 })).toBe(known);
    expect(earlier(known, undefined)).toBeUndefined();
    expect(earlier({ pid: 8, forks: undefined }, known)).toBeUndefined();
  });
});
