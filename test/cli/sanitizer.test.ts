import fc from 'fast-check';
import { Sanitizer } from '../../src/cli/sanitizer.js';

function sanitized(...chunks: (string | Uint8Array)[]): string {
  const sanitizer = new Sanitizer();
  const text = chunks.map((chunk) => sanitizer.push(Buffer.from(chunk as string)));
  return text.join('') + sanitizer.end();
}

describe('the sanitizer', () => {
  it.each([
    ['text, line ends and tabs', 'a\tb\r\nc\n中é😀', 'a\tb\nc\n中é😀'],
    ['colours', '\x1b[1;31mred\x1b[0m', 'red'],
    ['cursor movement', 'a\x1b[2Kb\x1b[5;5Hc', 'abc'],
    ['window titles, with either end', '\x1b]0;title\x07a\x1b]2;t\x1b\\b', 'ab'],
    ['clipboard writes', '\x1b]52;c;cm0gLXJm\x07x', 'x'],
    ['device control strings', '\x1bP$q"p\x1b\\x', 'x'],
    ['hyperlinks', '\x1b]8;;http://e\x1b\\link\x1b]8;;\x1b\\', 'link'],
    ['queries that a terminal answers', '\x1b[c\x1b[6n\x05\x1bZx', 'x'],
    ['C1 controls', '\u009b31mred\u009d0;t\u009cx', 'redx'],
    ['character sets', '\x1b(0x\x1b(B', 'x'],
    ['bells, backspaces, nulls and deletes', 'a\x07\x08\0\x7fb', 'ab'],
    ['text that would be overwritten', 'evil\rgood\n', 'evil\ngood\n'],
    ['directions', 'a\u202eb\u2066c', 'abc'],
    ['a sequence that is aborted', '\x1b[31\x18a\x1b[\x1b[1mb', 'ab'],
    ['a sequence without an end', 'a\x1b[31', 'a'],
    ['a carriage return at the end', 'a\r', 'a\n'],
    ['several carriage returns', 'a\r\r\nb', 'a\nb'],
    ['a carriage return on an empty line', 'a\r\n\x1b[?2004l\rb\r\n\r\r\tc', 'a\nb\n\tc'],
  ])('of %s', (_, dirty, clean) => {
    expect(sanitized(dirty)).toBe(clean);
  });

  it('replaces broken UTF-8', () => {
    expect(sanitized(Buffer.from([0x61, 0xff, 0x62, 0xe4, 0xb8]))).toBe('a\ufffdb\ufffd');
  });

  const dirty = fc.array(
    fc.constantFrom(
      0x1b,
      0x5b,
      0x5d,
      0x50,
      0x5c,
      0x07,
      0x0d,
      0x0a,
      0x18,
      0x30,
      0x6d,
      0xc2,
      0x9b,
      0xe2,
      0x80,
      0xae,
      0xff,
    ),
    { maxLength: 200 },
  );

  it('gives the same however the bytes are cut', () => {
    fc.assert(
      fc.property(dirty, (bytes) => {
        const whole = sanitized(Uint8Array.from(bytes));
        expect(sanitized(...bytes.map((byte) => Uint8Array.of(byte)))).toBe(whole);
      }),
    );
  });

  it('lets no control through but line ends and tabs', () => {
    fc.assert(
      fc.property(dirty, (bytes) => {
        expect(sanitized(Uint8Array.from(bytes)).replace(/[\n\t]/g, '')).not.toMatch(
          /\p{Cc}|\u202e/u,
        );
      }),
    );
  });
});
