/** What a program has switched on in the person's terminal, and how to switch it off again. */

const ESC = 0x1b;

/** Modes that are on in a terminal that nobody has touched: auto-wrap and the visible cursor. */
const ON_BY_DEFAULT = new Set([7, 25]);
/** Alternate screens: left first, so that what follows meets the person's own screen. */
const SCREENS = new Set([47, 1047, 1049]);

/** Bytes of one control sequence; what is longer is no sequence that sets a mode. */
const MAX_SEQUENCE_BYTES = 64;

/** DEC private modes, keypad, keyboard protocols, scroll region, character set and cursor style. */
export class ScreenModes {
  readonly #changed = new Set<number>();
  #touched = false;
  #keypad = false;
  #region = false;
  #charset = false;
  #cursorStyle = false;
  #modifyKeys = false;
  #keyboardPushes = 0;
  /** What has come of a sequence after its ESC, maybe in chunks before; undefined outside of one. */
  #pending: string | undefined;

  /** Looks at output that goes to the terminal. */
  push(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      if (this.#pending === undefined) {
        at = bytes.indexOf(ESC, at);
        if (at < 0) return;
      }
      at = this.#collect(bytes, at);
    }
  }

  /** Takes bytes of one sequence; gives where it ended. */
  #collect(bytes: Uint8Array, from: number): number {
    let at = from;
    for (; at < bytes.length; at++) {
      const byte = bytes[at] ?? 0;
      // An ESC in the middle of a sequence ends it and begins another one.
      const sequence = byte === ESC ? '' : (this.#pending ?? '') + String.fromCharCode(byte);
      this.#pending = sequence;
      if (isComplete(sequence)) this.#apply(sequence);
      else if (sequence.length <= MAX_SEQUENCE_BYTES) continue;
      this.#pending = undefined;
      return at + 1;
    }
    return at;
  }

  #apply(sequence: string): void {
    this.#touched = true;
    const [, modes, set] = /^\[\?([\d;]+)([hl])$/.exec(sequence) ?? [];
    if (modes !== undefined) {
      for (const mode of modes.split(';')) this.#mode(Number(mode), set === 'h');
    } else if (sequence === 'c') this.#reset();
    else if (sequence === '=') this.#keypad = true;
    else if (sequence === '>') this.#keypad = false;
    else if (/^\[[\d;]*r$/.test(sequence)) this.#region = sequence !== '[r';
    else if (/^\(.$/.test(sequence)) this.#charset = sequence !== '(B';
    else if (/^\[\d* q$/.test(sequence)) this.#cursorStyle = true;
    else if (/^\[>4;\d+m$/.test(sequence)) this.#modifyKeys = true;
    else if (/^\[>\d*u$/.test(sequence)) this.#keyboardPushes += 1;
    else if (/^\[<\d*u$/.test(sequence)) this.#popKeyboard(sequence);
  }

  #mode(mode: number, on: boolean): void {
    if (on === ON_BY_DEFAULT.has(mode)) this.#changed.delete(mode);
    else this.#changed.add(mode);
  }

  #popKeyboard(sequence: string): void {
    const count = Number(sequence.slice(2, -1) || '1');
    this.#keyboardPushes = Math.max(0, this.#keyboardPushes - count);
  }

  #reset(): void {
    this.#changed.clear();
    this.#keypad = this.#region = this.#charset = this.#cursorStyle = this.#modifyKeys = false;
    this.#keyboardPushes = 0;
  }

  /** What brings the terminal back to where it was; empty when nothing acted on it. */
  restoring(): string {
    if (!this.#touched) return '';
    const modes = [...this.#changed].sort(
      (a, b) => Number(SCREENS.has(b)) - Number(SCREENS.has(a)),
    );
    return [
      // Ends a sequence that was cut off in its middle (CAN).
      this.#pending === undefined ? '' : '\x18',
      this.#keyboardPushes > 0 ? `\x1b[<${this.#keyboardPushes}u` : '',
      this.#modifyKeys ? '\x1b[>4m' : '',
      ...modes.map((mode) => `\x1b[?${mode}${ON_BY_DEFAULT.has(mode) ? 'h' : 'l'}`),
      this.#keypad ? '\x1b>' : '',
      // The cursor would go to the upper left corner.
      this.#region ? '\x1b7\x1b[r\x1b8' : '',
      this.#charset ? '\x1b(B' : '',
      this.#cursorStyle ? '\x1b[0 q' : '',
      '\x1b[0m',
    ].join('');
  }
}

/** ECMA-48: CSI ends with the first byte that is no parameter, another escape after its intermediates. */
function isComplete(sequence: string): boolean {
  return sequence.startsWith('[')
    ? /^\[[ -?]*[^ -?]$/.test(sequence)
    : /^[ -/]*[^ -/[]$/.test(sequence);
}
