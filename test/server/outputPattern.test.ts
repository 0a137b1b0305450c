import type { OutputEvent } from '../../src/core/event.js';
import { OutputPattern } from '../../src/server/outputPattern.js';

/** Events of the given bytes, with seqs from 1. */
function outputs(...pieces: (string | readonly number[])[]): OutputEvent[] {
  return pieces.map((piece, index) => ({
    type: 'pty.output',
    seq: index + 1,
    timeMicros: 0,
    data: typeof piece === 'string' ? Buffer.from(piece) : Buffer.from(piece),
  }));
}

/** What is found when the events come one at a time. */
function findEach(pattern: string, events: readonly OutputEvent[]): number | undefined {
  const looking = new OutputPattern(pattern);
  for (const event of events) {
    const found = looking.find([event]);
    if (found !== undefined) return found;
  }
  return undefined;
}

describe('a pattern in output', () => {
  it.each([
    ['within one event', 'ready', ['not yet ', 'ready now'], 2],
    ['over a border', 'ready', ['rea', 'dy'], 2],
    ['over a border within a character', 'gr.n', ['gr', [0xc3], [0xbc, 0x6e]], 3],
    ['of characters beyond the first plane', '[😀]x', [[0xf0, 0x9f], [0x98], [0x80], 'x'], 4],
    [
      'that names an end of text, once the last character is whole',
      '^a.$',
      ['a', [0xc3], [0xbc]],
      3,
    ],
    [
      'at bytes that are no UTF-8, each a replacement character',
      'a\\x{FFFD}{2}b',
      ['a', [0xff, 0xfe], 'b'],
      3,
    ],
    ['in a case that folds', '(?i)STRASSE', ['straße ', 'strasse'], 2],
  ] as const)('is found %s', (_what, pattern, pieces, seq) => {
    expect(findEach(pattern, outputs(...pieces))).toBe(seq);
    expect(new OutputPattern(pattern).find(outputs(...pieces))).toBe(seq);
  });

  it('is not found before it is whole', () => {
    const looking = new OutputPattern('é|end');
    const [first, second] = outputs([0xc3], [0x28]) as [OutputEvent, OutputEvent];
    expect(looking.find([first])).toBeUndefined();
    expect(looking.find([second])).toBeUndefined();
    expect(looking.find(outputs('end'))).toBe(1);
  });

  it('is found where it began up to 64 KiB ago, and not where it began before', () => {
    const far = (gap: number) => outputs('begin', 'ü'.repeat(gap / 2), 'end');
    const pattern = 'begin(?s:.*)end';
    expect(findEach(pattern, far(64 * 1024 - 10))).toBe(3);
    expect(findEach(pattern, far(64 * 1024))).toBeUndefined();
  });

  it('counts what is left of a character, cut by the limit of the past, for nothing', () => {
    const past = outputs('ü'.repeat(32 * 1024), 'x');
    expect(findEach('\\x{FFFD}', [...past, ...outputs('y', 'z')])).toBeUndefined();
  });
});
