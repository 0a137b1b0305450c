import fc from 'fast-check';
import { keysInput, pasteInput } from '../../src/session/sendInput.js';

const normal = { applicationCursorKeys: false, bracketedPaste: false };
const application = { applicationCursorKeys: true, bracketedPaste: true };

describe('named keys', () => {
  it.each([
    [['Enter'], '\r'],
    [['C-c'], '\x03'],
    [['C-C'], '\x03'],
    [['C-['], '\x1b'],
    [['C-@'], '\0'],
    [['M-x'], '\x1bx'],
    [['M-Enter'], '\x1b\r'],
    [['a', 'é', '😀'], 'aé😀'],
    [['Up', 'End'], '\x1b[A\x1b[F'],
    [['PageDown', 'F5', 'BTab', 'Delete'], '\x1b[6~\x1b[15~\x1b[Z\x1b[3~'],
  ])('%j are %j', (keys, bytes) => {
    expect(keysInput(keys, normal)).toBe(bytes);
  });

  it('of the cursor follow the program’s mode', () => {
    expect(keysInput(['Up', 'Home'], application)).toBe('\x1bOA\x1bOH');
  });

  it.each(['Upp', '', 'C-', 'C-é', 'M-', 'toString', 'constructor'])('%j is none', (key) => {
    expect(() => keysInput([key], normal)).toThrow(
      expect.objectContaining({ reason: 'FIELD_INVALID' }),
    );
  });
});

describe('a paste', () => {
  it('is in brackets where the program asked for them', () => {
    expect(pasteInput('a\nb', application)).toBe('\x1b[200~a\nb\x1b[201~');
    expect(pasteInput('a\nb', normal)).toBe('a\nb');
  });

  it('cannot end its brackets early, whatever it holds', () => {
    const parts = fc.constantFrom('\x1b[201~', '\x1b[20', '1~', '\x1b[', '201~', 'rm -rf\r');
    fc.assert(
      fc.property(fc.array(parts), (texts) => {
        const pasted = pasteInput(texts.join(''), application);
        expect(pasted.indexOf('\x1b[201~')).toBe(pasted.length - 6);
      }),
    );
  });
});
