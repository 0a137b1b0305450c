/** Whether text ends within an escape sequence (ECMA-48): then a parser is in the middle of it. */

const ESC = '\x1b';
const BEL = '\x07';
/** UTF-16 units of an unfinished sequence that are kept to see its end. */
const MAX_TAIL = 4_096;

/** What follows ESC in a control sequence that is complete. */
const CONTROL_SEQUENCE = /^\[[0-?]*[ -/]*[@-~]/;
/** What follows ESC in a control string: OSC, DCS, SOS, PM, APC. */
const CONTROL_STRING = /^[\]PX^_]/;
/** What follows ESC in any other sequence that is complete. */
const ESCAPE_SEQUENCE = /^[ -/]*[0-OQ-WYZ\\`-~]/;

export class EscapeTail {
  /** From the last ESC on; empty when its sequence is complete. */
  #tail = '';

  /** The text so far does not end within a sequence. */
  get closed(): boolean {
    return this.#tail === '';
  }

  push(text: string): void {
    const last = text.lastIndexOf(ESC);
    if (last < 0 && this.closed) return;
    const tail = last < 0 ? this.#tail + text : text.slice(last);
    this.#tail = isComplete(tail.slice(1)) ? '' : tail.slice(0, MAX_TAIL);
  }
}

function isComplete(sequence: string): boolean {
  // ST, the other end of a control string, begins with an ESC of its own.
  if (CONTROL_STRING.test(sequence)) return sequence.includes(BEL);
  return CONTROL_SEQUENCE.test(sequence) || ESCAPE_SEQUENCE.test(sequence);
}
