/** Signals that input would raise under the default line discipline. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { hasSignalByte, signalsRaisedBy } from '../../src/core/signals.js';

describe('input', () => {
  it.each<[number[], string[]]>([
    [[], []],
    [[0x6c, 0x73, 0x0d], []],
    [[0x03], ['SIGINT']],
    [[0x1c], ['SIGQUIT']],
    [[0x1a], ['SIGTSTP']],
    [
      [0x61, 0x1a, 0x03, 0x03, 0x1c],
      ['SIGINT', 'SIGQUIT', 'SIGTSTP'],
    ],
  ])('%j would raise %j', (bytes, expected) => {
    expect(signalsRaisedBy(Uint8Array.from(bytes))).toEqual(expected);
  });

  it('raises signals exactly when it has a signal byte, wherever that stands', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (data) => {
        const has = [0x03, 0x1a, 0x1c].some((byte) => data.includes(byte));
        expect(hasSignalByte(data)).toBe(has);
        expect(signalsRaisedBy(data).length > 0).toBe(has);
      }),
    );
  });
});
