/** State of a terminal that its serialised form leaves out: margins, character sets, cursor, title. */
import type { Terminal } from '@xterm/headless';

/** UTF-16 units kept of a title. */
const MAX_TITLE = 1_024;

/** Repeat counts above it are refused: the emulator would loop over them, up to 2³¹ times. */
const MAX_REPEAT = 1_000;
/** CHT, IL, DL, SU, SD, CBT, REP (ECMA-48, 8.3): sequences that act as often as they say. */
const REPEATING = ['I', 'L', 'M', 'S', 'T', 'Z', 'b'];

const SHIFT_OUT = '\x0e';
const SHIFT_IN = '\x0f';

type CharacterSet = 'g0' | 'g1';

export class TrackedModes {
  title = '';
  cursorVisible = true;
  /** DECSTBM of the buffer it was set in; undefined: the whole screen. */
  #margins: { readonly buffer: string; readonly params: readonly number[] } | undefined;
  readonly #sets = { g0: 'B', g1: 'B' };
  #shiftedOut = false;

  constructor(
    private readonly terminal: Terminal,
    /** The scrollback is being erased. */
    onErased: () => void,
  ) {
    const { parser } = terminal;
    terminal.onTitleChange((title) => {
      this.title = title.slice(0, MAX_TITLE);
    });
    terminal.onResize(() => {
      this.#margins = undefined;
    });
    for (const final of REPEATING) {
      parser.registerCsiHandler({ final }, ([count]) => Number(count) > MAX_REPEAT);
    }
    parser.registerCsiHandler({ final: 'J' }, ([what]) => {
      if (what === 3) onErased();
      return false;
    });
    parser.registerEscHandler({ final: 'c' }, () => {
      onErased();
      this.#reset();
      this.title = '';
      return false;
    });
    parser.registerCsiHandler({ intermediates: '!', final: 'p' }, () => {
      this.#reset();
      return false;
    });
    parser.registerCsiHandler({ final: 'r' }, (params) => {
      const numbers = params.filter((param) => typeof param === 'number');
      this.#margins = { buffer: terminal.buffer.active.type, params: numbers };
      return false;
    });
    for (const [final, visible] of [
      ['h', true],
      ['l', false],
    ] as const) {
      parser.registerCsiHandler({ prefix: '?', final }, (params) => {
        if (params.includes(25)) this.cursorVisible = visible;
        return false;
      });
    }
    for (const [intermediates, set] of [
      ['(', 'g0'],
      [')', 'g1'],
    ] as const) {
      for (const final of ['0', 'A', 'B']) this.#follow(intermediates, set, final);
    }
  }

  /** Shifts have no handler of their own; control strings do not hold them in practice. */
  noteShifts(text: string): void {
    const out = text.lastIndexOf(SHIFT_OUT);
    const back = text.lastIndexOf(SHIFT_IN);
    if (out !== back) this.#shiftedOut = out > back;
  }

  /** Brings a terminal that got the serialised form into this state. */
  restoreSequence(): string {
    const { cursorX, cursorY } = this.terminal.buffer.active;
    const margins =
      this.#margins?.buffer === this.terminal.buffer.active.type ? this.#margins.params : undefined;
    return [
      margins && `\x1b[${margins.join(';')}r\x1b[${cursorY + 1};${cursorX + 1}H`,
      `\x1b(${this.#sets.g0}\x1b)${this.#sets.g1}`,
      this.#shiftedOut ? '\x0e' : '',
      this.cursorVisible ? '' : '\x1b[?25l',
      this.title && `\x1b]2;${this.title}\x07`,
    ].join('');
  }

  #follow(intermediates: string, set: CharacterSet, final: string): void {
    this.terminal.parser.registerEscHandler({ intermediates, final }, () => {
      this.#sets[set] = final;
      return false;
    });
  }

  #reset(): void {
    this.cursorVisible = true;
    this.#margins = undefined;
    this.#sets.g0 = 'B';
    this.#sets.g1 = 'B';
    this.#shiftedOut = false;
  }
}
