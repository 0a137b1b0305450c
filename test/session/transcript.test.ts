import fc from 'fast-check';
import { Transcript } from '../../src/session/transcript.js';

async function read(chunks: readonly string[], size = { cols: 10, rows: 4 }): Promise<string> {
  const transcript = new Transcript(size);
  let text = '';
  for (const chunk of chunks) text += await transcript.write(Buffer.from(chunk));
  return text + (await transcript.end());
}

const lines = (count: number) => Array.from({ length: count }, (_, n) => `line ${n}`);

describe('the transcript of a terminal', () => {
  it.each([
    ['a line without an end', ['$ '], '$'],
    ['lines that were printed', ['a\r\n', '\r\n', 'b\r\n'], 'a\n\nb\n'],
    ['a line that a program wrote over', ['10%\r', '100%\r\n'], '100%\n'],
    ['a line that was shortened', ['wrong\r\x1b[Kok\r\n'], 'ok\n'],
    ['one line that the terminal wrapped', [`${'x'.repeat(25)}\r\n`], `${'x'.repeat(25)}\n`],
    ['lines that a program went up to', ['a 1\r\nb 1\r\n\x1b[2Aa 2\r\nb 2\r\n'], 'a 2\nb 2\n'],
    ['a screen before it was cleared', ['a\r\nb\r\n\x1b[H\x1b[2J\x1b[3Jc\r\n'], 'a\nb\nc\n'],
    ['a screen that was erased from its top', ['a\r\nb\x1b[H\x1b[Jc'], 'a\nb\nc'],
    [
      'what had scrolled away when that was erased',
      [`${lines(9).join('\r\n')}\x1b[3J!`],
      lines(9).join('\n').concat('!'),
    ],
    ['a terminal that was reset', ['a\r\n\x1bcb'], 'a\nb'],
    ['a screen that a program still shows', ['a\r\n\x1b[?1049h\x1b[Hb'], 'a\n\nb'],
    ['wide characters', ['中文字\r\n'], '中文字\n'],
  ])('has %s', async (_, chunks, text) => {
    expect(await read(chunks)).toBe(text);
  });

  it('loses no line of a long output, and gives none twice, at any size', async () => {
    const output = lines(20_000);
    for (const size of [
      { cols: 10, rows: 4 },
      { cols: 7, rows: 4 },
      { cols: 200, rows: 300 },
    ]) {
      expect(await read([output.join('\r\n')], size)).toBe(output.join('\n'));
    }
  });

  it('goes on over changes of the size', async () => {
    const transcript = new Transcript({ cols: 20, rows: 4 });
    let text = '';
    for (const [n, line] of lines(2_000).entries()) {
      transcript.resize({ cols: 10 + (n % 17), rows: 3 + (n % 5) });
      text += await transcript.write(Buffer.from(`${line}\r\n`));
    }
    expect(text + (await transcript.end())).toBe(`${lines(2_000).join('\n')}\n`);
  });

  it('is the same however the bytes are cut', async () => {
    const output = Buffer.from(
      `é中 one\r\n\x1b[1mtwo\x1b[0m\r${'y'.repeat(30)}\r\n\x1b[H\x1b[2Jend`,
    );
    const whole = await read([output.toString()]);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(output.length), { maxLength: 6 }), async (cuts) => {
        const places = [0, ...cuts.sort((a, b) => a - b), output.length];
        const transcript = new Transcript({ cols: 10, rows: 4 });
        let text = '';
        for (const [at, begin] of places.slice(0, -1).entries()) {
          text += await transcript.write(output.subarray(begin, places[at + 1]));
        }
        expect(text + (await transcript.end())).toBe(whole);
      }),
      { numRuns: 50 },
    );
  });
});
