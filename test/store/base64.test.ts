import fc from 'fast-check';
import { decodeBase64 } from '../../src/store/base64.js';

const decode = (text: Buffer, maxBytes = 1_000) => decodeBase64(text, 0, text.length, maxBytes);

describe('reading base64', () => {
  it('gives back what was encoded, from the middle of a buffer too', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 700, size: 'max' }), (data) => {
        const text = Buffer.from(data).toString('base64');
        expect(decode(Buffer.from(text))).toEqual(Buffer.from(data));
        const around = Buffer.from(`-_"${text}"-_`);
        expect(decodeBase64(around, 3, 3 + text.length, 700)).toEqual(Buffer.from(data));
      }),
    );
  });

  it('takes nothing but the one text that stands for the bytes', () => {
    const character = fc.oneof(
      fc.constantFrom(...'=-_/+A \n"').map((text) => text.charCodeAt(0)),
      fc.nat(255),
    );
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1, maxLength: 200, size: 'max' }),
        fc.array(fc.tuple(fc.nat(5), character), { minLength: 1, maxLength: 3 }),
        fc.nat(),
        (data, changes, at) => {
          const text = Buffer.from(Buffer.from(data).toString('base64'));
          for (const [fromEnd, byte] of changes)
            text[Math.max(text.length - 1 - fromEnd, 0)] = byte;
          text[at % text.length] = changes[0]?.[1] ?? 0;
          const found = decode(text);
          if (found) expect(found.toString('base64')).toBe(text.toString('latin1'));
          else expect(isCanonical(text)).toBe(false);
        },
      ),
      { numRuns: 5_000 },
    );
  });

  it('takes any length up to the bound and none above', () => {
    const text = Buffer.from(Buffer.alloc(300, 7).toString('base64'));
    expect(decode(text, 300)).toHaveLength(300);
    expect(decode(text, 299)).toBeUndefined();
    expect(decode(Buffer.alloc(0))).toBeUndefined();
  });
});

/** By the plain decoder: whether encoding what it reads gives the same text. */
function isCanonical(text: Buffer): boolean {
  return (
    Buffer.from(text.toString('latin1'), 'base64').toString('base64') === text.toString('latin1')
  );
}
