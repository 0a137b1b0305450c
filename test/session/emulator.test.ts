import fc from 'fast-check';
import { Emulator } from '../../src/session/emulator.js';
import { findText } from '../../src/session/findText.js';
import { readPage } from '../../src/session/linePage.js';
import { MAX_SCROLLBACK_BYTES, MAX_SCROLLBACK_LINES } from '../../src/session/lineStore.js';

const size = { cols: 20, rows: 4 };

async function shown(...texts: string[]): Promise<Emulator> {
  const emulator = new Emulator(size);
  await print(emulator, ...texts);
  return emulator;
}

async function print(emulator: Emulator, ...texts: string[]): Promise<void> {
  for (const text of texts) await emulator.write(emulator.throughSeq + 1, Buffer.from(text));
}

const numbered = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `${from + index}\r\n`).join('');

const page = (emulator: Emulator, request = {}) => readPage(emulator.lines(), request);

describe('the emulator’s screen', () => {
  it('has text, cursor, title, size and the seq that it is as of', async () => {
    const emulator = await shown('\x1b]2;my title\x07one\r\n', 'two');
    expect(emulator.screen('text')).toEqual({
      screen: 'one\ntwo\n\n\n',
      size,
      cursorColumn: 3,
      cursorRow: 1,
      cursorVisible: true,
      alternateScreen: false,
      title: 'my title',
      modes: { applicationCursorKeys: false, bracketedPaste: false },
      throughSeq: 2,
    });
  });

  it('has the cursor at the columns’ number where the next character wraps', async () => {
    expect((await shown('x'.repeat(20))).screen('text').cursorColumn).toBe(20);
  });

  it('knows the modes that input depends on, and whether the cursor is hidden', async () => {
    const { modes, cursorVisible } = (await shown('\x1b[?1h\x1b[?2004h\x1b[?25l')).screen('text');
    expect(modes).toEqual({ applicationCursorKeys: true, bracketedPaste: true });
    expect(cursorVisible).toBe(false);
  });

  it('renders a character that is split over any number of events', async () => {
    const emulator = new Emulator(size);
    for (const byte of Buffer.from('“é😀한”')) await emulator.write(1, Uint8Array.of(byte));
    expect(emulator.screen('text').screen).toBe('“é😀한”\n\n\n\n');
  });

  it.each(['S', 'T', 'L', 'M', 'b', 'I', 'Z'])(
    'is not held up by a sequence that wants to be repeated two billion times: %s',
    async (final) => {
      const emulator = await shown('a');
      const started = performance.now();
      await print(emulator, `\x1b[2147483647${final}z`);
      expect(performance.now() - started).toBeLessThan(1_000);
      expect(emulator.screen('text').screen).toContain('z');
    },
  );

  it('answers no query: who types for the terminal is somebody else', async () => {
    const emulator = await shown('\x1b[c\x1b[6n\x1b]10;?\x07ok');
    expect(emulator.screen('text').screen).toBe('ok\n\n\n\n');
  });
});

describe('the emulator’s lines', () => {
  it('are those that scrolled away and those on the screen', async () => {
    const emulator = await shown(numbered(1, 300));
    expect(page(emulator)).toEqual({
      text: `${numbered(1, 300).replaceAll('\r', '')}\n`,
      totalLines: 301,
      lineBegin: 0,
      lineEnd: 301,
      truncated: false,
      droppedLines: 0,
    });
  });

  it('join the rows of a line that was wrapped, on the screen and beyond it', async () => {
    const long = 'abcdefghij'.repeat(6);
    const emulator = await shown(`${long}\r\n`, numbered(1, 200), `${long}\r\n`);
    const { text } = page(emulator);
    expect(text.split('\n')[0]).toBe(long);
    expect(text.split('\n').slice(-3)).toEqual([long, '', '']);
  });

  it('join a wide character that did not fit into the row before', async () => {
    const emulator = await shown(`${'x'.repeat(19)}한글`);
    expect(page(emulator).text).toBe(`${'x'.repeat(19)}한글\n`);
  });

  it('break where one alone would fill a page, and lose nothing of it', async () => {
    const endless = 'y'.repeat(40_000);
    const emulator = await shown(endless, '\r\nend');
    const lines = page(emulator).text.split('\n');
    expect(lines.slice(0, -2).join('')).toBe(endless);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(32 * 1024);
  });

  it('lose no character that stands where the line is about to wrap', async () => {
    const emulator = await shown(`${numbered(1, 300)}${'y'.repeat(20)}`, 'end');
    expect(page(emulator, { count: 1 }).text).toBe(`${'y'.repeat(20)}end\n`);
  });

  it('are those that were printed, whatever their lengths and however they came', async () => {
    const lengths = fc.array(fc.nat({ max: 200 }), { minLength: 1, maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(lengths, fc.integer({ min: 1, max: 3_000 }), async (each, piece) => {
        const lines = each.map((length, index) => `${index}:`.padEnd(length, 'x'));
        const text = lines.map((line) => `${line}\r\n`).join('');
        const emulator = new Emulator({ cols: 7, rows: 3 });
        for (let at = 0; at < text.length; at += piece) {
          await print(emulator, text.slice(at, at + piece));
        }
        expect(page(emulator).text).toBe([...lines, '', ''].join('\n'));
      }),
      { numRuns: 25 },
    );
  });

  it('keep 10,000, count those dropped, and so keep their numbers', async () => {
    const emulator = await shown(numbered(1, 15_000));
    const newest = page(emulator, { count: 2 });
    expect(newest).toMatchObject({ text: '15000\n\n', totalLines: MAX_SCROLLBACK_LINES });
    expect(newest.droppedLines).toBe(15_001 - MAX_SCROLLBACK_LINES);
    expect(newest.truncated).toBe(true);
    const number = newest.droppedLines + newest.lineBegin;
    await print(emulator, numbered(15_001, 16_000));
    const later = page(emulator, { offset: 1_000, count: 2 });
    expect(later.text).toBe('15000\n15001\n');
    expect(later.droppedLines + later.lineBegin).toBe(number);
  });

  it('keep 4 MiB', async () => {
    const wide = new Emulator({ cols: 1000, rows: 4 });
    const line = 'z'.repeat(1_000);
    for (let index = 0; index < 5_000; index += 100) {
      await print(wide, `${line}\r\n`.repeat(100));
    }
    expect(wide.stored.bytes).toBeLessThanOrEqual(MAX_SCROLLBACK_BYTES);
    expect(wide.stored.length).toBeGreaterThan(4_000);
    expect(page(wide).truncated).toBe(true);
  });

  it('are erased with the scrollback, and their numbers with them', async () => {
    const emulator = await shown(numbered(1, 500), '\x1b[H\x1b[2J\x1b[3J', 'fresh');
    const { text, totalLines, droppedLines, truncated } = page(emulator);
    expect(text).toBe('fresh\n');
    expect(totalLines).toBe(1);
    expect(droppedLines).toBeGreaterThanOrEqual(496);
    expect(truncated).toBe(true);
  });

  it('end with the alternate screen while a program shows it, and without it afterwards', async () => {
    const emulator = await shown('before\r\n', '\x1b[?1049h\x1b[Hmenu');
    expect(page(emulator).text).toBe('before\n\nmenu\n');
    await print(emulator, '\x1b[?1049lafter');
    expect(page(emulator).text).toBe('before\nafter\n');
  });

  it('come back from a taller window as far as they are near', async () => {
    const emulator = await shown(numbered(1, 50));
    emulator.resize({ cols: 20, rows: 10 });
    expect(emulator.screen('text').screen.split('\n').slice(0, 2)).toEqual(['42', '43']);
    expect(page(emulator).totalLines).toBe(51);
  });
});

describe('a page of lines', () => {
  it('ends before the offset and holds the count', async () => {
    const emulator = await shown(numbered(1, 99), '100');
    const { text, lineBegin, lineEnd } = page(emulator, { offset: 10, count: 3 });
    expect({ text, lineBegin, lineEnd }).toEqual({
      text: '88\n89\n90\n',
      lineBegin: 87,
      lineEnd: 90,
    });
  });

  it('is empty beyond the oldest line', async () => {
    const emulator = await shown('one');
    expect(page(emulator, { offset: 7 })).toMatchObject({ text: '', lineBegin: 0, lineEnd: 0 });
  });

  it('holds 500 lines at most', async () => {
    const emulator = await shown(numbered(1, 1_000));
    const { lineBegin, lineEnd } = page(emulator, { count: 900 });
    expect(lineEnd - lineBegin).toBe(500);
  });

  it('holds 256 KiB at most, no line cut in two, and says that it was cut', async () => {
    const wide = new Emulator({ cols: 1000, rows: 4 });
    await print(wide, `${'한'.repeat(499)}\r\n`.repeat(400));
    const { text, lineBegin, lineEnd, truncated } = page(wide);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(256 * 1024);
    expect(Buffer.byteLength(text)).toBeGreaterThan(250 * 1024);
    expect(new Set(text.split('\n'))).toEqual(new Set(['한'.repeat(499), '']));
    expect(lineEnd - lineBegin).toBeLessThan(401);
    expect(truncated).toBe(true);
  });

  it('is not truncated when a later one is asked for that leaves nothing out', async () => {
    const wide = new Emulator({ cols: 1000, rows: 4 });
    await print(wide, `${'한'.repeat(499)}\r\n`.repeat(400));
    expect(page(wide).truncated).toBe(true);
    expect(page(wide, { count: 10 }).truncated).toBe(false);
  });

  it.each([{ offset: -1 }, { count: 1.5 }, { offset: Number.NaN }])(
    'refuses %j',
    async (request) => {
      const emulator = await shown('x');
      expect(() => page(emulator, request)).toThrow(/whole number/);
    },
  );
});

describe('a gap', () => {
  it('leaves modes, margins and the screen, and ends a sequence that it cut', async () => {
    const emulator = await shown('\x1b[?1049h\x1b[?1h\x1b[2;3r\x1b[1;1Htop\x1b[31');
    await emulator.skip(2);
    await print(emulator, '\x1b[3;1Ha\r\nb\r\nc');
    const { screen, alternateScreen, modes } = emulator.screen('text');
    expect(alternateScreen).toBe(true);
    expect(modes.applicationCursorKeys).toBe(true);
    // Only rows 2 and 3 scrolled.
    expect(screen).toBe('top\nb\nc\n\n');
  });

  it('is said for a while, and not for ever', async () => {
    const emulator = await shown('before\r\n');
    expect(emulator.skippedFromSeq).toBeUndefined();
    await emulator.skip(2);
    await print(emulator, numbered(1, 300));
    expect(emulator.skippedFromSeq).toBe(2);
    expect(emulator.screen('text').skippedFromSeq).toBe(2);
    // Nine million bytes that show nothing.
    const blank = '\x1b[0m\x1b[1m\x1b[0m'.repeat(750_000);
    await print(emulator, blank);
    expect(emulator.skippedFromSeq).toBeUndefined();
    expect(emulator.screen('text')).not.toHaveProperty('skippedFromSeq');
  });
});

describe('a parked emulator', () => {
  it('comes back with margins, character set, hidden cursor, title and lines', async () => {
    const state = '\x1b[2;3r\x1b(0\x1b[?25l\x1b]2;t\x07\x1b[3;1H';
    const [parked, kept] = await Promise.all([
      shown(numbered(1, 300), state),
      shown(numbered(1, 300), state),
    ]);
    parked.park();
    await parked.wake();
    for (const emulator of [parked, kept]) await print(emulator, 'q\r\nq');
    expect(parked.screen('text')).toEqual(kept.screen('text'));
    expect(parked.screen('text').screen).toContain('─');
    expect(page(parked)).toEqual(page(kept));
  });
});

describe('finding text', () => {
  it('goes from the newest line to the oldest, left to right within a line', async () => {
    const emulator = await shown('b1 b2\r\n', numbered(1, 200), 'b3');
    const { matches, truncated, totalLines } = await findText(emulator.lines(), 'b\\d');
    expect(matches.map(({ line, column, matched }) => [line, column, matched])).toEqual([
      [201, 0, 'b3'],
      [0, 0, 'b1'],
      [0, 3, 'b2'],
    ]);
    expect({ truncated, totalLines }).toEqual({ truncated: false, totalLines: 202 });
  });

  it('counts cells, not characters, and finds over wrapped rows', async () => {
    const emulator = await shown(`한글 ${'x'.repeat(14)}needle`);
    const { matches } = await findText(emulator.lines(), 'needle');
    expect(matches).toMatchObject([{ line: 0, column: 19 }]);
  });

  it('says when there are more than were asked for', async () => {
    const emulator = await shown('aaaa');
    expect((await findText(emulator.lines(), 'a', 4)).truncated).toBe(false);
    const { matches, truncated } = await findText(emulator.lines(), 'a', 3);
    expect([matches.length, truncated]).toEqual([3, true]);
  });

  it('quotes 4 KiB of a line at most, whole characters', async () => {
    const wide = new Emulator({ cols: 1000, rows: 4 });
    await print(wide, '한'.repeat(4_000));
    const { matches } = await findText(wide.lines(), '한+');
    expect(Buffer.byteLength(matches[0]?.text ?? '')).toBeLessThanOrEqual(4_096);
    expect(matches[0]?.matched).toMatch(/^한+$/);
  });

  it('takes linear time for a pattern that makes others take for ever', async () => {
    const wide = new Emulator({ cols: 1000, rows: 4 });
    await print(wide, `${'a'.repeat(900)}\r\n`.repeat(20));
    const started = performance.now();
    const { matches } = await findText(wide.lines(), '(a*)*b');
    expect(matches).toEqual([]);
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  it.each(['', '(', 'a{2000}', 'x'.repeat(1_025)])('refuses the pattern %j', async (pattern) => {
    const emulator = await shown('x');
    await expect(findText(emulator.lines(), pattern)).rejects.toMatchObject({
      reason: 'FIELD_INVALID',
    });
  });
});
