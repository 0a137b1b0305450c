/** What output that is not rendered would have left behind: modes, margins, character sets, title. */

/** UTF-16 units of a title, and of a sequence that the end of the bytes cuts, that are looked at. */
const MAX_SEQUENCE = 1_100;
/** Different modes that are kept; programs use a dozen. */
const MAX_MODES = 64;
/** Bytes at the end in which colours are looked for: most programs change them all the time. */
const COLOUR_BYTES = 4_096;

/**
 * DECSET and SM with their opposites, DECSTBM, DECSTR; SCS; OSC 0 and 2; RIS; SO and SI.
 * What a saved cursor brings back (DECRC, the end of the alternate screen) is not followed. Everything
 * else shows something, or nothing that lasts.
 */
const LASTING =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: terminals are controlled by them.
  /\x1b(?:\[([?!]?)([\d;]*)([hlrp])|([()])([0AB])|\][02];([^\x07\x1b]*)(?:\x07|\x1b\\)|(c))|([\x0e\x0f])/g;

/** SGR, and what sets it back too. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals are controlled by them.
const COLOUR = /\x1b\[([\d;:]*)m|\x1bc|\x1b\[!p/g;

const ALTERNATE_SCREEN = ['?47', '?1047', '?1049'];
const ORIGIN = '?6';

const RIS = '\x1bc';
const DECSTR = '\x1b[!p';

export class LeftOutModes {
  /** By prefix and number, `h` or `l`. */
  readonly #modes = new Map<string, string>();
  readonly #sets = new Map<string, string>();
  #reset = '';
  #margins: string | undefined;
  #shift = '';
  #title: string | undefined;
  /** A sequence that the end of the last bytes cut. */
  #rest = '';
  #end: Buffer = Buffer.alloc(0);

  /** Bytes that are left out, in order. */
  note(data: Uint8Array): void {
    const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    this.#end = Buffer.concat([this.#end, bytes.subarray(-COLOUR_BYTES)]).subarray(-COLOUR_BYTES);
    const mayLast = this.#rest !== '' || [0x1b, 0x0e, 0x0f].some((byte) => bytes.includes(byte));
    if (!mayLast) return;
    const text = this.#rest + bytes.toString('latin1');
    let end = 0;
    for (const match of text.matchAll(LASTING)) {
      this.#take(match);
      end = match.index + match[0].length;
    }
    const last = text.lastIndexOf('\x1b');
    const isCut = last >= end && text.length - last <= MAX_SEQUENCE;
    this.#rest = isCut ? text.slice(last) : '';
  }

  /** Lines scroll over the whole normal screen, as far as is known. */
  get scrollsWhole(): boolean {
    const isSet = (mode: string) => this.#modes.get(mode) === 'h';
    return this.#margins === undefined && ![...ALTERNATE_SCREEN, ORIGIN].some(isSet);
  }

  /** Brings a terminal that was in the state before into the one after. */
  sequence(): string {
    const isAlternate = ([mode]: readonly [string, string]) => ALTERNATE_SCREEN.includes(mode);
    const modes = [...this.#modes];
    return [
      this.#reset,
      ...modes.filter(isAlternate).map(modeSequence),
      ...modes.filter((mode) => !isAlternate(mode)).map(modeSequence),
      this.#margins === undefined ? '' : `\x1b[${this.#margins}r`,
      ...[...this.#sets].map(([which, set]) => `\x1b${which}${set}`),
      this.#shift,
      this.#colours(),
      this.#title === undefined ? '' : `\x1b]2;${this.#title}\x07`,
    ].join('');
  }

  #take(match: RegExpExecArray): void {
    const [, prefix = '', params = '', final, which, set, title, ris, shift] = match;
    if (shift !== undefined) this.#shift = shift;
    else if (ris !== undefined) this.#resetAll();
    else if (title !== undefined) this.#title = utf8(title).slice(0, MAX_SEQUENCE);
    else if (which !== undefined && set !== undefined) this.#sets.set(which, set);
    else if (final === 'p' && prefix === '!') this.#resetSoftly();
    else if (final === 'r' && prefix === '') this.#margins = params;
    else if ((final === 'h' || final === 'l') && prefix !== '!') {
      for (const number of params.split(';')) this.#mode(`${prefix}${number}`, final);
    }
  }

  #mode(mode: string, state: string): void {
    if (!this.#modes.has(mode) && this.#modes.size >= MAX_MODES) return;
    this.#modes.delete(mode);
    this.#modes.set(mode, state);
    // Each screen has margins of its own.
    if (ALTERNATE_SCREEN.includes(mode)) this.#margins = undefined;
  }

  /** What changed since colours were last set back. */
  #colours(): string {
    let colours = '';
    for (const [sequence, params] of this.#end.toString('latin1').matchAll(COLOUR)) {
      const isReset = params === undefined || params === '' || /^0(;|$)/.test(params);
      colours = (isReset ? '' : colours) + (params === undefined ? '' : sequence);
    }
    return colours;
  }

  #resetAll(): void {
    this.#resetSoftly();
    this.#reset = RIS;
    this.#modes.clear();
    this.#title = undefined;
  }

  /** The emulator's soft reset sets all modes back and stays on its screen. */
  #resetSoftly(): void {
    if (this.#reset === '') this.#reset = DECSTR;
    for (const mode of [...this.#modes.keys()]) {
      if (!ALTERNATE_SCREEN.includes(mode)) this.#modes.delete(mode);
    }
    this.#sets.clear();
    this.#margins = undefined;
    this.#shift = '';
  }
}

function modeSequence([mode, state]: readonly [string, string]): string {
  return `\x1b[${mode}${state}`;
}

function utf8(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString();
}
