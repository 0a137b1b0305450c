/** The lines that a terminal has shown from its first output on, each as it was when it left. */
import xterm from '@xterm/headless';
import type { TerminalSize } from '../core/event.js';
import { unicodeVersion } from './cellWidth.js';
import { PIECE_ROWS, pieceEnd } from './emulator.js';
import { lineEnd, linesOf, lineText, MAX_LINE_ROWS, usedRows } from './screenRows.js';

/** Rows that were given go every `PIECE_ROWS`; room for a few pieces and for a line that has not ended. */
const SCROLLBACK = 4 * PIECE_ROWS + MAX_LINE_ROWS;

/** Parameters of ED (ECMA-48, 8.3.39, and xterm's 3): from the cursor on; the screen; what scrolled away. */
const ED_BELOW = 0;
const ED_SCREEN = 2;
const ED_SCROLLED = 3;

/**
 * A line is given when it scrolls away or the screen is erased, so that nothing of a long history is
 * kept. What a program draws on the alternate screen leaves no line, but for a last one that is still
 * there. One call at a time.
 */
export class Transcript {
  readonly #terminal: InstanceType<typeof xterm.Terminal>;
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  /** Rows of the normal screen, oldest first, whose text was given. */
  #given = 0;
  #text = '';
  #leftOut = false;

  constructor(size: TerminalSize) {
    const terminal = new xterm.Terminal({
      ...size,
      scrollback: SCROLLBACK,
      allowProposedApi: true,
      logLevel: 'off',
    });
    terminal.unicode.register(unicodeVersion);
    terminal.unicode.activeVersion = unicodeVersion.version;
    // They run before what they are told of is done.
    terminal.parser.registerCsiHandler({ final: 'J' }, ([mode]) => this.#beforeErase(Number(mode)));
    terminal.parser.registerEscHandler({ final: 'c' }, () => this.#beforeReset());
    terminal.buffer.onBufferChange(({ type }) => {
      if (type === 'normal') this.#leftOut = true;
    });
    this.#terminal = terminal;
  }

  /** Whether a program has left an alternate screen, none of which is among the lines. */
  get leftOut(): boolean {
    return this.#leftOut;
  }

  /** The lines that nothing can change any more, each with its line feed. */
  async write(data: Uint8Array): Promise<string> {
    await this.#render(this.#decoder.decode(data, { stream: true }));
    return this.#taken();
  }

  resize(size: TerminalSize): void {
    if (size.cols === this.#terminal.cols && size.rows === this.#terminal.rows) return;
    // Rows get other numbers where long lines are wrapped anew.
    this.#trim();
    this.#terminal.resize(size.cols, size.rows);
  }

  /** The rest: what is on the screen. */
  async end(): Promise<string> {
    await this.#render(this.#decoder.decode());
    const { normal, active } = this.#terminal.buffer;
    const lines = linesOf(normal, this.#given, usedRows(normal), this.#terminal.cols);
    if (active.type === 'alternate') lines.push(...linesOf(active, 0, usedRows(active), 1));
    this.#text += lines.join('\n');
    this.#terminal.dispose();
    return this.#taken();
  }

  #taken(): string {
    const text = this.#text;
    this.#text = '';
    return text;
  }

  async #render(text: string): Promise<void> {
    const { cols } = this.#terminal;
    for (let begin = 0; begin < text.length; ) {
      const end = pieceEnd(text, begin, cols);
      const piece = text.slice(begin, end);
      await new Promise<void>((resolve) => this.#terminal.write(piece, resolve));
      this.#giveScrolled();
      begin = end;
    }
  }

  #giveScrolled(): void {
    const { normal } = this.#terminal.buffer;
    const { cols } = this.#terminal;
    while (this.#given < normal.baseY) {
      const next = lineEnd(normal, this.#given, normal.length, cols);
      if (next > normal.baseY) break;
      this.#text += `${lineText(normal, this.#given, next)}\n`;
      this.#given = next;
    }
    // Trimming moves a cursor that is about to wrap, so it waits, while it can.
    const isAboutToWrap = normal.cursorX === cols && this.#given < 3 * PIECE_ROWS;
    if (this.#given >= PIECE_ROWS && !isAboutToWrap) this.#trim();
  }

  /** Lets go of the rows that were given and are not on the screen. */
  #trim(): void {
    const { baseY } = this.#terminal.buffer.normal;
    const gone = Math.min(this.#given, baseY);
    if (gone === 0) return;
    // A smaller limit trims the oldest rows.
    this.#terminal.options.scrollback = baseY - gone;
    this.#terminal.options.scrollback = SCROLLBACK;
    this.#given -= gone;
  }

  #giveRows(end: number): void {
    const lines = linesOf(this.#terminal.buffer.normal, this.#given, end, this.#terminal.cols);
    while (lines.at(-1) === '') lines.pop();
    for (const line of lines) this.#text += `${line}\n`;
  }

  #beforeErase(mode: number): false {
    const { normal, active } = this.#terminal.buffer;
    if (active.type === 'alternate') return false;
    const isAtHome = normal.cursorX === 0 && normal.cursorY === 0;
    if (mode === ED_SCREEN || (mode === ED_BELOW && isAtHome)) {
      this.#giveRows(usedRows(normal));
      this.#given = normal.baseY;
    } else if (mode === ED_SCROLLED) {
      this.#giveRows(normal.baseY);
      this.#given = Math.max(0, this.#given - normal.baseY);
    }
    return false;
  }

  #beforeReset(): false {
    this.#giveRows(usedRows(this.#terminal.buffer.normal));
    this.#given = 0;
    return false;
  }
}
