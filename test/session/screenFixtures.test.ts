import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TerminalSize } from '../../src/core/event.js';
import { Emulator } from '../../src/session/emulator.js';
import type { ScreenState } from '../../src/session/screenState.js';

/** As test/fixtures/screens/record.mjs writes them. */
interface Fixture {
  readonly size: TerminalSize;
  readonly steps: readonly ({ readonly data_b64: string } | TerminalSize)[];
  readonly tmux: {
    readonly rows: readonly string[];
    readonly cursor: { readonly column: number; readonly row: number };
    readonly alternate: boolean;
  };
}

/** Where a person sees something else than tmux says: why, and what. */
interface Difference {
  readonly reason: string;
  readonly rows: readonly string[];
}

const dir = join(import.meta.dirname, '../fixtures/screens');
const differences: Readonly<Record<string, Difference>> = read('differences');
const names = readdirSync(dir)
  .filter((file) => file.endsWith('.json') && file !== 'differences.json')
  .map((file) => file.slice(0, -'.json'.length));

function read<T>(name: string): T {
  return JSON.parse(readFileSync(join(dir, `${name}.json`), 'utf8'));
}

function pieces(data: Uint8Array, length: number): Uint8Array[] {
  const count = Math.ceil(data.length / length);
  return Array.from({ length: count }, (_, at) => data.subarray(at * length, (at + 1) * length));
}

async function play(
  { size, steps }: Fixture,
  pieceLength: number,
  between: (emulator: Emulator) => Promise<void> = async () => {},
): Promise<Emulator> {
  const emulator = new Emulator(size);
  let seq = 0;
  for (const step of steps) {
    if ('cols' in step) emulator.resize(step);
    else {
      for (const piece of pieces(Buffer.from(step.data_b64, 'base64'), pieceLength)) {
        seq += 1;
        await emulator.write(seq, piece);
        await between(emulator);
      }
    }
  }
  return emulator;
}

function rowsOf({ screen }: ScreenState): string[] {
  return screen.split('\n').slice(0, -1);
}

describe('a screen from recorded bytes', () => {
  it.each(names)('is the one that a person sees in tmux: %s', async (name) => {
    const fixture = read<Fixture>(name);
    const screen = (await play(fixture, 64 * 1024)).screen('text');
    const { rows, cursor, alternate } = fixture.tmux;
    const difference = differences[name];
    if (difference) {
      expect(rowsOf(screen).join('\n').trimEnd().split('\n')).toEqual(difference.rows);
      // A difference that is none any more has to leave the list.
      expect(rowsOf(screen)).not.toEqual(rows);
      return;
    }
    expect(rowsOf(screen)).toEqual(rows);
    expect({ column: screen.cursorColumn, row: screen.cursorRow }).toEqual(cursor);
    expect(screen.alternateScreen).toBe(alternate);
  });

  it.each(names)('is the same however its bytes were cut: %s', async (name) => {
    const fixture = read<Fixture>(name);
    const whole = (await play(fixture, 64 * 1024)).screen('ansi').screen;
    // Byte by byte takes a millisecond each.
    const bytes = fixture.steps.map((step) => ('cols' in step ? 0 : step.data_b64.length));
    for (const length of Math.max(...bytes) < 1_000 ? [1, 7] : [13, 1_000]) {
      expect((await play(fixture, length)).screen('ansi').screen).toBe(whole);
    }
  });

  it.each(names)('is the same when the emulator was parked in between: %s', async (name) => {
    const fixture = read<Fixture>(name);
    const whole = (await play(fixture, 64 * 1024)).screen('text');
    const parked = await play(fixture, 500, async (emulator) => {
      emulator.park();
      await emulator.wake();
    });
    expect({ ...parked.screen('text'), throughSeq: 0 }).toEqual({ ...whole, throughSeq: 0 });
  });

  it.each(names)('is drawn again by its ANSI form: %s', async (name) => {
    const original = await play(read<Fixture>(name), 64 * 1024);
    const { size, screen } = original.screen('ansi');
    const copy = new Emulator(size);
    await copy.write(original.throughSeq, Buffer.from(screen));
    expect(copy.screen('text')).toEqual(original.screen('text'));
  });
});
