import fc from 'fast-check';
import { QueryFilter } from '../../src/cli/queryFilter.js';

function filtered(...chunks: string[]): string {
  const filter = new QueryFilter();
  const passed = chunks.map((chunk) => filter.push(Buffer.from(chunk, 'latin1')));
  return Buffer.concat([...passed, filter.end()]).toString('latin1');
}

describe('history that is replayed to a terminal', () => {
  it.each([
    ['device attributes', '\x1b[c\x1b[0c\x1b[>c\x1b[=c'],
    ['status and cursor position', '\x1b[5n\x1b[6n\x1b[?6n'],
    ['modes', '\x1b[?2026$p\x1b[4$p'],
    ['version and keyboard', '\x1b[>q\x1b[>0q\x1b[?u'],
    ['window reports', '\x1b[14t\x1b[18t\x1b[21t'],
    ['colours and clipboard', '\x1b]10;?\x07\x1b]4;1;?\x1b\\\x1b]52;c;?\x07'],
    ['settings and capabilities', '\x1bP$qm\x1b\\\x1bP+q544e\x1b\\'],
    ['the answer-back and the old identification', '\x05\x1bZ'],
  ])('asks it for no %s', (_, questions) => {
    expect(filtered(`a${questions}b`)).toBe('ab');
  });

  it.each([
    '\x1b[1;31mred\x1b[0m',
    '\x1b[2J\x1b[H\x1b[?1049h\x1b[?25l',
    '\x1b]0;what?\x07',
    '\x1b]8;;http://e/?a\x1b\\link',
    '\x1b]52;c;aGk=\x07',
    '\x1b[8;24;80t\x1b[22;0t',
    '\x1b[5 q\x1b[>4;2m\x1b[>1u\x1b(0\x1b7\x1b8\x1bc',
    '\x1bPq#0;2;0;0;0\x1b\\',
    '\xe2\x82\xac plain \r\n',
  ])('keeps %j', (text) => {
    expect(filtered(text)).toBe(text);
  });

  it('passes on what it held when the history ends in the middle', () => {
    expect(filtered('a\x1b[6')).toBe('a\x1b[6');
  });

  it('passes on control strings of any length', () => {
    const image = `\x1bPq${'#'.repeat(100_000)}\x1b\\x`;
    expect(filtered(image)).toBe(image);
  });

  it('is the same however the bytes are cut', () => {
    const piece = fc.constantFrom(
      '\x1b',
      '[',
      ']',
      'P',
      '\\',
      '?',
      '6',
      'n',
      'c',
      ';',
      '\x07',
      'x',
      '\x05',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
        expect(filtered(...pieces)).toBe(filtered(pieces.join('')));
      }),
    );
  });
});
