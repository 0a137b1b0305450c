import fc from 'fast-check';
import { needOf } from '../../src/server/patternNeed.js';
import { compilePattern } from '../../src/session/pattern.js';

const needIn = (pattern: string, text: string) =>
  needOf(compilePattern(pattern))?.(Buffer.from(text), 0);

describe('what a pattern needs', () => {
  it.each([
    ['needle-[0-9]+ found', 'a needle-x is found', 'a needle-x is not'],
    ['needle-[0-9]+ found', 'not found, needle-', 'found needle'],
    ['BUILD (SUCCEEDED|FAILED)', 'FAILED BUILD ', 'BUILD DONE'],
    ['(?:error|panic): ', 'panic : panic: ', 'warning: '],
    ['x(?:grün)+y', 'xygrün', 'xgruny'],
    ['a.c', 'ca', 'cb'],
  ])('is known of %s', (pattern, enough, tooLittle) => {
    expect(needIn(pattern, enough)).toBe(true);
    expect(needIn(pattern, tooLittle)).toBe(false);
  });

  it.each(['(?i)error', '[a-z]+', 'a*', '^$', '\\x{FFFD}b?', '(?:error|[0-9])'])(
    'is nothing where it may match without any fixed text: %s',
    (pattern) => {
      expect(needIn(pattern, '')).not.toBe(false);
    },
  );

  it('is left to the engine where there are many alternatives', () => {
    const words = (count: number) =>
      Array.from({ length: count }, (_, i) => `${String.fromCodePoint(0x430 + i)}x`).join('|');
    expect(needIn(words(9), 'none')).toBe(false);
    expect(needIn(words(30), 'none')).not.toBe(false);
  });

  it('is never missing where the pattern matches, in text that goes by', () => {
    const piece = fc.constantFrom(
      'ab',
      'c',
      'é',
      '.',
      '[bc]',
      '^',
      '$',
      '\\b',
      'a|b',
      '😀',
      '(?i)d',
    );
    const quantity = fc.constantFrom('', '?', '*', '+', '{2}');
    const group = fc
      .array(fc.tuple(piece, quantity), { minLength: 1, maxLength: 3 })
      .map((parts) => `(?:${parts.map(([text, many]) => `(?:${text})${many}`).join('')})`);
    const pattern = fc
      .array(fc.tuple(group, quantity, fc.constantFrom('', '|')), { minLength: 1, maxLength: 3 })
      .map((parts) => parts.map(([text, many, then]) => `${text}${many}${then}`).join(''));
    const bytes = fc.oneof(
      fc.constantFrom(
        ...['ab', 'c', 'é', 'b', 'a', 'd', '\n', '😀'].map((text) => Buffer.from(text)),
      ),
      fc.uint8Array({ minLength: 1, maxLength: 2 }).map((data) => Buffer.from(data)),
    );
    const steps = fc.array(fc.tuple(fc.array(bytes, { maxLength: 6 }), fc.nat(12)), {
      maxLength: 8,
    });
    fc.assert(
      fc.property(pattern, steps, (expression, added) => {
        const compiled = compilePattern(expression);
        const need = needOf(compiled);
        let text = Buffer.alloc(0);
        let offset = 0;
        for (const [parts, cut] of added) {
          text = Buffer.concat([text, ...parts]);
          if (need?.(text, offset) === false) expect(compiled.test(text)).toBe(false);
          const forgotten = Math.min(cut, text.length);
          text = text.subarray(forgotten);
          offset += forgotten;
        }
      }),
      { numRuns: 3_000 },
    );
  });

  it('is remembered as long as it is there', () => {
    const need = needOf(compilePattern('abc'));
    const text = (value: string) => Buffer.from(value);
    expect(need?.(text('xxab'), 0)).toBe(false);
    expect(need?.(text('xxabc'), 0)).toBe(true);
    expect(need?.(text('xabcab'), 1)).toBe(true);
    expect(need?.(text('abcabc'), 2)).toBe(true);
    expect(need?.(text('bcabcx'), 3)).toBe(true);
    expect(need?.(text('bcxbcx'), 6)).toBe(false);
  });
});
