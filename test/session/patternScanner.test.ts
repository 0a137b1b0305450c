import fc from 'fast-check';
import { OutputText } from '../../src/session/outputText.js';
import { PatternScanner } from '../../src/session/patternScanner.js';

function textOf(...chunks: (string | Uint8Array)[]) {
  const text = new OutputText();
  const lines = chunks.flatMap((chunk) => text.push(Buffer.from(chunk)));
  return { lines, line: text.line };
}

describe('the text of raw output', () => {
  it('is without colours, titles and other sequences', () => {
    const raw =
      '\x1b[1;31mred\x1b[0m \x1b]2;title\x07and \x1b]2;t\x1b\\plain\x1b(B\x1bP1$q\x1b\\\r\n';
    expect(textOf(raw)).toEqual({ lines: ['red and plain'], line: '' });
  });

  it('has what was printed over a line last', () => {
    expect(textOf('10%\r50%\r100%\r\n').lines).toEqual(['100%']);
  });

  it('follows backspaces', () => {
    expect(textOf('ab\b \bc').line).toBe('ac');
  });

  it('is the same however the bytes were cut', () => {
    const raw = Buffer.from('\x1b[1mé\x1b]0;한\x1b\\😀\r\nx\x1b[?25l\ry\tz\b\x1b(0q\r\n\x1b');
    const whole = textOf(raw);
    fc.assert(
      fc.property(fc.array(fc.nat(raw.length), { maxLength: 8 }), (places) => {
        const at = [0, ...places.sort((a, b) => a - b), raw.length];
        const chunks = at.slice(1).map((end, index) => raw.subarray(at[index], end));
        expect(textOf(...chunks)).toEqual(whole);
      }),
    );
  });

  it('breaks a line that never ends, so that memory is bounded', () => {
    const { lines, line } = textOf('x'.repeat(100_000));
    expect([...lines, line].join('')).toBe('x'.repeat(100_000));
    expect(line.length).toBeLessThanOrEqual(8_192);
  });
});

describe('a search in output', () => {
  const feed = (pattern: string, ...chunks: string[]) => {
    const scanner = new PatternScanner(pattern);
    return chunks.findIndex((chunk) => scanner.matches(Buffer.from(chunk)));
  };

  it('finds what is split over events, at the event that completes it', () => {
    expect(feed('ready', 're', 'ad', 'y\n', 'x')).toBe(2);
  });

  it('finds a prompt whose line has not ended', () => {
    expect(feed('login: $', 'host ', 'login: ')).toBe(1);
  });

  it('finds a line that ended in the middle of an event', () => {
    expect(feed('^two$', 'one\ntwo\nthree')).toBe(0);
  });

  it('finds through colours', () => {
    expect(feed('BUILD OK', '\x1b[32mBUILD \x1b[1mOK\x1b[0m')).toBe(0);
  });

  it.each([
    ['', '1-1024 bytes'],
    ['x'.repeat(1025), '1-1024 bytes'],
    ['(', 'no RE2 expression'],
    ['a{1000}b{1000}c{1000}', 'too complex'],
  ])('is refused for %j', (pattern, why) => {
    expect(() => feed(pattern)).toThrow(why);
  });

  it('does not find over lines', () => {
    expect(feed('a.b', 'a\nb')).toBe(-1);
  });
});
