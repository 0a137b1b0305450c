import fc from 'fast-check';
import { Literal } from '../../src/server/literal.js';

describe('a literal', () => {
  it('is found where a plain search finds it, from anywhere, in text after text', () => {
    const bytes = (minLength: number, maxLength: number) =>
      fc.array(fc.constantFrom(0x61, 0x62, 0x63), { minLength, maxLength });
    fc.assert(
      fc.property(
        bytes(1, 4),
        fc.array(fc.tuple(bytes(0, 300), fc.nat(310)), { maxLength: 8 }),
        (wanted, searches) => {
          const literal = new Literal(Uint8Array.from(wanted));
          expect(literal.length).toBe(wanted.length);
          for (const [bytes, at] of searches) {
            const text = Buffer.from(bytes);
            const from = Math.min(at, text.length);
            expect(literal.indexIn(text, from)).toBe(text.indexOf(Buffer.from(wanted), from));
          }
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it('is found behind any number of its bytes alone', () => {
    for (const wanted of ['ab', 'ba', 'aab', 'baa', 'aba']) {
      for (const lure of ['a', 'b', 'ac', 'bc', 'aac']) {
        const literal = new Literal(Buffer.from(wanted));
        for (let times = 0; times < 80; times++) {
          const text = Buffer.from(`${lure.repeat(times)}${wanted}${lure.repeat(80)}`);
          expect(literal.indexIn(text, 0)).toBe(text.indexOf(wanted));
        }
      }
    }
  });
});
