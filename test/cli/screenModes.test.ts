import { ScreenModes } from '../../src/cli/screenModes.js';

function restoring(...chunks: string[]): string {
  const modes = new ScreenModes();
  for (const chunk of chunks) modes.push(Buffer.from(chunk, 'latin1'));
  return modes.restoring();
}

describe('restoring the screen', () => {
  it('is nothing where nothing acted on it', () => {
    expect(restoring('plain text\r\n')).toBe('');
  });

  it('switches off what is on, the alternate screen first', () => {
    expect(restoring('\x1b[?2004h\x1b[?1000;1006h\x1b[?1049h')).toBe(
      '\x1b[?1049l\x1b[?2004l\x1b[?1000l\x1b[?1006l\x1b[0m',
    );
  });

  it('leaves alone what the program switched off itself', () => {
    expect(restoring('\x1b[?1049h\x1b[?25l', 'x', '\x1b[?25h\x1b[?1049l')).toBe('\x1b[0m');
  });

  it('shows the cursor and wraps again', () => {
    expect(restoring('\x1b[?25l\x1b[?7l')).toBe('\x1b[?25h\x1b[?7h\x1b[0m');
  });

  it('undoes keypad, scroll region, character set, cursor style and keyboard protocols', () => {
    expect(restoring('\x1b=\x1b[2;10r\x1b(0\x1b[5 q\x1b[>4;2m\x1b[>1u')).toBe(
      '\x1b[<1u\x1b[>4m\x1b>\x1b7\x1b[r\x1b8\x1b(B\x1b[0 q\x1b[0m',
    );
    expect(restoring('\x1b=\x1b>\x1b[2;10r\x1b[r\x1b(0\x1b(B\x1b[>1u\x1b[<u')).toBe('\x1b[0m');
  });

  it('knows that a reset undid everything', () => {
    expect(restoring('\x1b[?1049h\x1b[?1000h\x1b=\x1bc')).toBe('\x1b[0m');
  });

  it('finds sequences that are cut anywhere', () => {
    const text = 'a\x1b[?1000h\x1b[?25lb';
    expect(restoring(...text)).toBe(restoring(text));
    expect(restoring(...text)).toContain('\x1b[?1000l');
  });

  it('ends a sequence that was cut off', () => {
    expect(restoring('\x1b[?1000h\x1b[3')).toBe('\x18\x1b[?1000l\x1b[0m');
  });

  it('is not led astray by an endless sequence', () => {
    expect(restoring(`\x1b[${'1;'.repeat(10_000)}`, '\x1b[?1049h')).toBe('\x1b[?1049l\x1b[0m');
  });
});
