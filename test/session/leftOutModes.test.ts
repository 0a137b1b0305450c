import fc from 'fast-check';
import { Emulator } from '../../src/session/emulator.js';
import { LeftOutModes } from '../../src/session/leftOutModes.js';

function sequenceOf(...pieces: readonly string[]): string {
  const modes = new LeftOutModes();
  for (const piece of pieces) modes.note(Buffer.from(piece));
  return modes.sequence();
}

describe('what output that is left out leaves behind', () => {
  it.each([
    ['nothing of text and of cursor movements', 'text\r\n\x1b[5;6Hmore\x1b[2J\x1b[K', ''],
    [
      'the last state of each mode',
      '\x1b[?25l\x1b[?1;2004h\x1b[?25h',
      '\x1b[?1h\x1b[?2004h\x1b[?25h',
    ],
    ['the alternate screen, before all else', '\x1b[?1h\x1b[?1049h', '\x1b[?1049h\x1b[?1h'],
    ['margins', '\x1b[2;20r', '\x1b[2;20r'],
    ['no margins of the other screen', '\x1b[2;20r\x1b[?1049h', '\x1b[?1049h'],
    ['colours since the last reset', '\x1b[1m\x1b[0;31m\x1b[44m', '\x1b[0;31m\x1b[44m'],
    ['character sets and the shift', '\x1b(0\x1b)B\x0e\x0f\x0e', '\x1b(0\x1b)B\x0e'],
    ['the last title', '\x1b]0;one\x07\x1b]2;\u6f22\x1b\\', '\x1b]2;\u6f22\x07'],
    ['a reset, and what came after it', '\x1b[?1h\x1b]2;t\x07\x1bc\x1b[?2004h', '\x1bc\x1b[?2004h'],
    ['a soft reset', '\x1b[?1049h\x1b[2;9r\x1b[?25l\x1b[!p', '\x1b[!p\x1b[?1049h'],
    ['no reports, windows and private sequences', '\x1b[6n\x1b[>4;1m\x1b[?1$p\x1b[22;0;0t', ''],
  ])('is %s', (_what, output, sequence) => {
    expect(sequenceOf(output)).toBe(sequence);
  });

  /** They show nothing, and none brings back what was saved with a cursor, which is not followed. */
  const parts = fc.array(
    fc.constantFrom(
      '\x1b[?1h',
      '\x1b[?1l',
      '\x1b[?2004h',
      '\x1b[?25l',
      '\x1b[?25h',
      '\x1b[?1049h',
      '\x1b(0',
      '\x1b(B',
      '\x0e',
      '\x0f',
      '\x1b]2;title\x07',
      '\x1b[31m',
      '\x1b[m',
      '\x1bc',
      '\x1b[!p',
    ),
    { maxLength: 30 },
  );

  it('is the same in whatever pieces it comes', () => {
    fc.assert(
      fc.property(parts, fc.integer({ min: 1, max: 9 }), (output, size) => {
        const whole = output.join('');
        const pieces = whole.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
        expect(sequenceOf(...pieces)).toBe(sequenceOf(whole));
      }),
    );
  });

  it('brings an emulator into the state that the output itself would have', async () => {
    const state = async (text: string) => {
      const emulator = new Emulator({ cols: 20, rows: 4 });
      await emulator.write(1, Buffer.from(text));
      // What was written in the end shows character sets and colours.
      await emulator.write(2, Buffer.from('\x1b[2J\x1b[Hlqk'));
      const { cursorColumn: _column, cursorRow: _row, ...rest } = emulator.screen('ansi');
      return rest;
    };
    await fc.assert(
      fc.asyncProperty(parts, async (output) => {
        const whole = output.join('');
        expect(await state(sequenceOf(whole))).toEqual(await state(whole));
      }),
      { numRuns: 200 },
    );
  });
});
