/** One terminal emulator: bytes in, screen and lines out. Runs where its work delays nobody. */
import addon from '@xterm/addon-serialize';
import xterm from '@xterm/headless';
import type { TerminalSize } from '../core/event.js';
import { textWidth, unicodeVersion } from './cellWidth.js';
import { EscapeTail } from './escapeTail.js';
import { keptLines } from './keptLines.js';
import type { LineView } from './linePage.js';
import { LineStore } from './lineStore.js';
import { lineEnd, linesOf, lineText, MAX_LINE_ROWS, rowText, usedRows } from './screenRows.js';
import type { InputModes, ScreenFormat, ScreenState } from './screenState.js';
import { TrackedModes } from './trackedModes.js';

/** Scrolled rows left in the emulator, so that a taller window pulls them back as in any terminal. */
const KEPT_ROWS = 100;
/** Rows that one piece of output may scroll away; they are taken over before the next piece. */
export const PIECE_ROWS = 500;
/** Room for that, for a few pieces, and for the rows of a line that has not ended. */
const SCROLLBACK = KEPT_ROWS + 4 * PIECE_ROWS + MAX_LINE_ROWS;
const CAN = '\x18';
/** Output after which a gap is not spoken of any more: twice what is rendered after one at once. */
const GAP_BYTES = 8 * 1024 * 1024;

/** Lines on the screens, which later output may still change. */
export interface ScreenLines {
  /** Of the normal screen, with what scrolled away last. */
  readonly normal: readonly string[];
  /** Blank cells between the end of the last line's text and the cursor, if it stands there. */
  readonly cursorBlanks: number;
  /** Rows of the alternate screen while a program shows it. */
  readonly alternate?: readonly string[];
}

/**
 * Lines that scroll away are taken out as text, each under a number that it keeps, and the emulator
 * holds little more than its screen: 10,000 lines cost their text, not their cells. Idle, it can be
 * parked: then only its serialised form is held. One call at a time, and `wake` before the others.
 */
export class Emulator {
  readonly #stored = new LineStore();
  #size: TerminalSize;
  #live: Live | undefined;
  #parked = '';
  /** The emulator's own decoder loses characters that are split over more than two writes. */
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  #tail = new EscapeTail();
  #throughSeq = 0;
  #untoldSkip: number | undefined;
  #gap: { readonly fromSeq: number; bytesSince: number } | undefined;

  constructor(size: TerminalSize) {
    this.#size = size;
  }

  get throughSeq(): number {
    return this.#throughSeq;
  }

  get stored(): LineStore {
    return this.#stored;
  }

  /** Renders one event's bytes. */
  async write(seq: number, data: Uint8Array): Promise<void> {
    await this.#render(this.#decoder.decode(data, { stream: true }));
    this.#throughSeq = seq;
    if (this.#gap) this.#gap.bytesSince += data.length;
  }

  async #render(text: string): Promise<void> {
    const { terminal, modes } = this.#open();
    modes.noteShifts(text);
    this.#tail.push(text);
    await new Promise<void>((resolve) => {
      let begin = 0;
      while (begin < text.length) {
        const end = pieceEnd(text, begin, this.#size.cols);
        // The emulator runs pieces of one turn without a pause; each is tidied up after by itself.
        terminal.write(text.slice(begin, end), () => {
          this.#takeScrolled();
          if (end === text.length) resolve();
        });
        begin = end;
      }
      if (text.length === 0) resolve();
    });
  }

  /** Marks an event that shows nothing as rendered. */
  pass(seq: number): void {
    this.#throughSeq = seq;
  }

  /**
   * What is written next does not follow on what was written last: output from `fromSeq` on is left
   * out. Modes, margins, character sets and the screen stay, but for what `modes` changes.
   */
  async skip(fromSeq: number, modes = ''): Promise<void> {
    // Ends a character and a sequence that the gap cut in two.
    this.#decoder.decode();
    await this.#render(CAN + modes);
    this.#tail = new EscapeTail();
    this.#gap = { fromSeq: this.skippedFromSeq ?? fromSeq, bytesSince: 0 };
    this.#untoldSkip ??= fromSeq;
  }

  resize(size: TerminalSize): void {
    if (size.cols === this.#size.cols && size.rows === this.#size.rows) return;
    this.#open().terminal.resize(size.cols, size.rows);
    this.#size = size;
    this.#takeScrolled();
  }

  screenLines(): ScreenLines {
    const { terminal } = this.#open();
    const { normal, active } = terminal.buffer;
    const end = usedRows(normal);
    const cursorRow = normal.baseY + normal.cursorY;
    const cells = textWidth(rowText(normal, cursorRow));
    return {
      normal: linesOf(normal, 0, end, this.#size.cols),
      cursorBlanks: cursorRow + 1 === end ? Math.max(0, normal.cursorX - cells) : 0,
      ...(active.type === 'alternate' && { alternate: linesOf(active, 0, usedRows(active), 1) }),
    };
  }

  lines(): LineView {
    const { normal, alternate = [] } = this.screenLines();
    return keptLines(this.#stored, [...normal, ...alternate]);
  }

  screen(format: ScreenFormat): ScreenState {
    const { terminal, modes } = this.#open();
    const { active } = terminal.buffer;
    const { skippedFromSeq } = this;
    return {
      screen:
        format === 'ansi'
          ? serialized(this.#open(), 0) + modes.restoreSequence()
          : rowsText(terminal),
      size: this.#size,
      cursorColumn: active.cursorX,
      cursorRow: active.cursorY,
      cursorVisible: modes.cursorVisible,
      alternateScreen: active.type === 'alternate',
      title: modes.title,
      modes: this.inputModes(),
      throughSeq: this.#throughSeq,
      ...(skippedFromSeq !== undefined && { skippedFromSeq }),
    };
  }

  inputModes(): InputModes {
    const { applicationCursorKeysMode, bracketedPasteMode } = this.#open().terminal.modes;
    return {
      applicationCursorKeys: applicationCursorKeysMode,
      bracketedPaste: bracketedPasteMode,
    };
  }

  /** First seq left out, until enough has been rendered since the last gap. */
  get skippedFromSeq(): number | undefined {
    return this.#gap && this.#gap.bytesSince <= GAP_BYTES ? this.#gap.fromSeq : undefined;
  }

  /** First seq left out since the last call. */
  takeSkip(): number | undefined {
    const fromSeq = this.#untoldSkip;
    this.#untoldSkip = undefined;
    return fromSeq;
  }

  /**
   * Lets go of the emulator but for its serialised form and the lines. Does nothing in the middle of
   * an escape sequence.
   */
  park(): void {
    if (!this.#live || !this.#tail.closed) return;
    const { terminal, modes } = this.#live;
    this.#parked = serialized(this.#live, KEPT_ROWS) + modes.restoreSequence();
    terminal.dispose();
    this.#live = undefined;
  }

  /** Brings a parked emulator back; a new one is ready at once. */
  async wake(): Promise<void> {
    if (this.#live) return;
    const parked = this.#parked;
    this.#parked = '';
    const { terminal } = this.#open();
    if (parked !== '') await new Promise<void>((resolve) => terminal.write(parked, resolve));
  }

  #open(): Live {
    if (this.#live) return this.#live;
    const terminal = new xterm.Terminal({
      ...this.#size,
      scrollback: SCROLLBACK,
      allowProposedApi: true,
      logLevel: 'off',
    });
    const serializer = new addon.SerializeAddon();
    terminal.loadAddon(serializer);
    terminal.unicode.register(unicodeVersion);
    terminal.unicode.activeVersion = unicodeVersion.version;
    const modes = new TrackedModes(terminal, () => this.#erased());
    this.#live = { terminal, serializer, modes };
    return this.#live;
  }

  /** Stores the whole lines that scrolled off above the rows that stay, and lets go of their cells. */
  #takeScrolled(): void {
    const { terminal } = this.#open();
    const { normal } = terminal.buffer;
    const limit = normal.baseY - KEPT_ROWS;
    // Trimming moves a cursor that is about to wrap, so it waits for the next piece, while it can.
    if (normal.cursorX === this.#size.cols && limit < 3 * PIECE_ROWS) return;
    let row = 0;
    while (row < limit) {
      const next = lineEnd(normal, row, normal.length, this.#size.cols);
      if (next > limit) break;
      this.#stored.push(lineText(normal, row, next));
      row = next;
    }
    if (row === 0) return;
    // A smaller limit trims the oldest rows.
    terminal.options.scrollback = normal.baseY - row;
    terminal.options.scrollback = SCROLLBACK;
  }

  #erased(): void {
    const { normal } = this.#open().terminal.buffer;
    const unseen = linesOf(normal, 0, normal.baseY, this.#size.cols).length;
    this.#stored.dropBefore(this.#stored.end + unseen);
  }
}

interface Live {
  readonly terminal: InstanceType<typeof xterm.Terminal>;
  readonly serializer: InstanceType<typeof addon.SerializeAddon>;
  readonly modes: TrackedModes;
}

/** Where a piece ends that cannot scroll more than `PIECE_ROWS` rows away. */
export function pieceEnd(text: string, begin: number, cols: number): number {
  let weight = 0;
  for (let index = begin; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    // LF, VT, FF and whatever an escape sequence does: a row each. Else two cells, a wide character.
    weight += unit === 0x1b || (unit >= 0x0a && unit <= 0x0c) ? cols : unit < 0x80 ? 1 : 2;
    // Not at a multiple of `cols`, where a long line would be about to wrap each time.
    if (weight > (PIECE_ROWS - 1) * cols - 1) return index;
  }
  return text.length;
}

/** The addon moves by zero cells where it means not at all; a terminal moves by one then. */
function serialized({ serializer }: Live, scrollback: number): string {
  return serializer.serialize({ scrollback }).replaceAll('\x1b[0C', '').replaceAll('\x1b[0D', '');
}

function rowsText(terminal: Live['terminal']): string {
  const { active } = terminal.buffer;
  let text = '';
  for (let row = 0; row < terminal.rows; row += 1) {
    text += `${rowText(active, active.baseY + row)}\n`;
  }
  return text;
}
