import fc from 'fast-check';
import { bracketedPaste, parseKeys } from '../../src/core/keys.js';

const typed = (list: string) => Buffer.from(parseKeys('keys', list)).toString('latin1');

describe('keys by name', () => {
  it.each([
    ['C-c', '\x03'],
    ['ctrl-]', '\x1d'],
    ['C-@', '\0'],
    ['C-Space', '\0'],
    ['C-?', '\x7f'],
    ['M-x', '\x1bx'],
    ['alt-Enter', '\x1b\r'],
    ['C-M-a', '\x1b\x01'],
    ['S-a', 'A'],
    ['Up', '\x1b[A'],
    ['down', '\x1b[B'],
    ['C-Left', '\x1b[1;5D'],
    ['S-M-Right', '\x1b[1;4C'],
    ['Home', '\x1b[H'],
    ['PgUp', '\x1b[5~'],
    ['C-Delete', '\x1b[3;5~'],
    ['F1', '\x1bOP'],
    ['S-F1', '\x1b[1;2P'],
    ['F5', '\x1b[15~'],
    ['F12', '\x1b[24~'],
    ['Tab', '\t'],
    ['S-Tab', '\x1b[Z'],
    ['BTab', '\x1b[Z'],
    ['Esc', '\x1b'],
    ['BSpace', '\x7f'],
    ['Comma', ','],
    ['-', '-'],
    ['C', 'C'],
  ])('%s is what xterm sends', (name, bytes) => {
    expect(typed(name)).toBe(bytes);
  });

  it('go in the order of the list, and characters stand for themselves', () => {
    expect(typed('l,s,Enter,C-d')).toBe('ls\r\x04');
    expect(Buffer.from(parseKeys('keys', 'é,中')).toString()).toBe('é中');
  });

  it.each(['', 'C-', 'Hyper-x', 'F13', 'C-é', 'C-Enter', 'ls', 'a,,b', 'toString'])(
    '%j is refused',
    (list) => {
      expect(() => parseKeys('keys', list)).toThrow('is not a key');
    },
  );
});

describe('a bracketed paste', () => {
  it('wraps the bytes as they are', () => {
    const paste = bracketedPaste(Buffer.from([0, 255, 10]));
    expect(Buffer.from(paste)).toEqual(
      Buffer.concat([
        Buffer.from('\x1b[200~'),
        Buffer.from([0, 255, 10]),
        Buffer.from('\x1b[201~'),
      ]),
    );
  });

  it('ends once and at its end, whatever is pasted', () => {
    const piece = fc.constantFrom('\x1b[201~', '\x1b[2', '01~', '\x1b', 'x', '\x1b[200~');
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const paste = Buffer.from(bracketedPaste(Buffer.from(pieces.join('')))).toString();
        expect(paste.indexOf('\x1b[201~')).toBe(paste.length - '\x1b[201~'.length);
      }),
    );
  });
});
