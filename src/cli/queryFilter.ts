/** Takes questions to the terminal out of history: what it answered would be typed into the program. */

const ESC = 0x1b;
const BEL = 0x07;
/** ENQ: asks for the answer-back message. */
const ENQ = 0x05;

/** Bytes of the longest question; a longer control string (an image, say) is passed on. */
const MAX_QUESTION_BYTES = 4096;

/** Control sequences without their `ESC [` that a terminal answers. */
const QUESTIONS = [
  // Device attributes, status and cursor position, terminal parameters.
  /^[?>=]?[\d;]*c$/,
  /^\??[\d;]*n$/,
  /^[\d;]*x$/,
  // State of modes, version, keyboard protocol, graphics, checksum.
  /^\??[\d;]*\$p$/,
  /^>[\d;]*q$/,
  /^\?u$/,
  /^\?[\d;]*S$/,
  /^[\d;]*\*y$/,
  // Reports of the window.
  /^(?:11|1[3-689]|2[01])(?:;[\d;]*)?t$/,
];

/** Control strings without `ESC` and end: settings, capabilities, colours, clipboard, images. */
const STRING_QUESTIONS = [/^P\$q/, /^P\+q/, /^\].*;\?(?:;|$)/, /^_G.*\ba=q\b/];

/** Everything else passes as it is. Sequences may be cut over chunks anywhere. */
export class QueryFilter {
  /** Bytes of a sequence that is not complete, from its ESC on; empty outside of one. */
  #held: number[] = [];

  push(chunk: Uint8Array): Uint8Array {
    if (this.#held.length === 0 && !chunk.includes(ESC) && !chunk.includes(ENQ)) return chunk;
    const passed: number[] = [];
    for (const byte of chunk) this.#byte(byte, passed);
    return Uint8Array.from(passed);
  }

  /** What is held back at the end of history: the beginning of what comes live. */
  end(): Uint8Array {
    const held = Uint8Array.from(this.#held);
    this.#held = [];
    return held;
  }

  #byte(byte: number, passed: number[]): void {
    const held = this.#held;
    if (held.length === 0) {
      if (byte === ESC) held.push(byte);
      else if (byte !== ENQ) passed.push(byte);
      return;
    }
    held.push(byte);
    const sequence = complete(held);
    if (sequence === undefined && held.length <= MAX_QUESTION_BYTES) return;
    if (sequence === undefined || !isQuestion(sequence)) for (const one of held) passed.push(one);
    this.#held = [];
  }
}

/** The text after ESC, without the end of a string; undefined while more is to come (ECMA-48, 5.3-5.6). */
function complete(held: readonly number[]): string | undefined {
  const last = held.at(-1) ?? 0;
  const introducer = String.fromCharCode(held[1] ?? 0);
  if (introducer === '[') {
    return held.length > 2 && last >= 0x40 ? textOf(held, held.length) : undefined;
  }
  if (!'P]_^X'.includes(introducer)) return textOf(held, held.length);
  if (last === BEL) return textOf(held, held.length - 1);
  const isTerminated = last === 0x5c && held.at(-2) === ESC && held.length > 3;
  return isTerminated ? textOf(held, held.length - 2) : undefined;
}

function textOf(held: readonly number[], end: number): string {
  return String.fromCharCode(...held.slice(1, end));
}

function isQuestion(sequence: string): boolean {
  if (sequence === 'Z') return true;
  return sequence.startsWith('[')
    ? QUESTIONS.some((question) => question.test(sequence.slice(1)))
    : STRING_QUESTIONS.some((question) => question.test(sequence));
}
