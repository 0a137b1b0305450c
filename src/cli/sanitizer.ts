/** Takes out of output whatever could act on the terminal of a person who reads it. */

/** Inside of what a byte is dropped. */
type State = 'text' | 'escape' | 'control sequence' | 'string' | 'string escape';

const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const ESC = 0x1b;
const BEL = 0x07;
const CAN = 0x18;
const SUB = 0x1a;
const CSI = 0x9b;
const ST = 0x9c;
/** DCS, SOS, OSC, PM and APC as C1 controls, and the letters after ESC that mean the same. */
const STRING_C1 = new Set([0x90, 0x98, 0x9d, 0x9e, 0x9f]);
const STRING_ESCAPES = new Set([0x50, 0x58, 0x5d, 0x5e, 0x5f]);

/**
 * What stays as it is: no control, and none of the marks that turn the direction of text round and
 * make it read as what it is not.
 */
const HARMLESS = /[^\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+/uy;

/**
 * Text, line ends and tabs stay; escape sequences, control strings and all other controls go. A
 * lone carriage return becomes a line end, since it would let output overwrite what was read; on an
 * empty line there is nothing to overwrite, and it goes.
 * Broken UTF-8 becomes U+FFFD. Sequences may be cut over chunks anywhere.
 */
export class Sanitizer {
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  #state: State = 'text';
  /** A carriage return that waits for what follows it. */
  #carriageReturn = false;
  #lineIsEmpty = true;

  push(chunk: Uint8Array): string {
    return this.#clean(this.#decoder.decode(chunk, { stream: true }));
  }

  /** What was held back at the end of the output. */
  end(): string {
    return this.#clean(this.#decoder.decode()) + this.#lineEnd();
  }

  #clean(text: string): string {
    let clean = '';
    for (let at = 0; at < text.length; ) {
      HARMLESS.lastIndex = at;
      const run = this.#state === 'text' ? HARMLESS.exec(text)?.[0] : undefined;
      if (run === undefined) {
        clean += this.#control(text.charCodeAt(at));
        at += 1;
      } else {
        clean += this.#lineEnd() + run;
        this.#lineIsEmpty = false;
        at += run.length;
      }
    }
    return clean;
  }

  /** What a character comes to that is a control, a mark, or inside of a sequence. */
  #control(code: number): string {
    if (this.#state !== 'text') {
      this.#state = this.#next(this.#state, code);
      return '';
    }
    if (code === LF) {
      this.#carriageReturn = false;
      this.#lineIsEmpty = true;
      return '\n';
    }
    if (code === CR) {
      this.#carriageReturn = !this.#lineIsEmpty;
      return '';
    }
    if (code === ESC) this.#state = 'escape';
    else if (code === CSI) this.#state = 'control sequence';
    else if (STRING_C1.has(code)) this.#state = 'string';
    if (code !== TAB) return '';
    const tab = `${this.#lineEnd()}\t`;
    this.#lineIsEmpty = false;
    return tab;
  }

  /** The line end that a lone carriage return becomes, once something follows it. */
  #lineEnd(): string {
    if (!this.#carriageReturn) return '';
    this.#carriageReturn = false;
    this.#lineIsEmpty = true;
    return '\n';
  }

  /** ECMA-48, sections 5.3 to 5.6; CAN and SUB end anything. */
  #next(state: State, code: number): State {
    if (code === CAN || code === SUB) return 'text';
    switch (state) {
      case 'escape':
        if (code === ESC) return 'escape';
        if (code === 0x5b) return 'control sequence';
        if (STRING_ESCAPES.has(code)) return 'string';
        return code >= 0x20 && code <= 0x2f ? 'escape' : 'text';
      case 'control sequence':
        if (code === ESC) return 'escape';
        return code >= 0x40 && code <= 0x7e ? 'text' : 'control sequence';
      case 'string':
        if (code === ESC) return 'string escape';
        return code === BEL || code === ST ? 'text' : 'string';
      case 'string escape':
        return code === 0x5c ? 'text' : this.#next('escape', code);
      case 'text':
        return 'text';
    }
  }
}
