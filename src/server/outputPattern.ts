/** Looks for a pattern in output that comes in pieces. */
import type { RE2JS } from 're2js';
import type { OutputEvent } from '../core/event.js';
import { compilePattern } from '../session/pattern.js';
import { MARGIN_BYTES } from '../store/reader/passage.js';
import { type Need, needOf } from './patternNeed.js';

/** Bytes of past output in which a match can begin: they fit before the next passage. */
const WINDOW = MARGIN_BYTES;

/** Reads output as UTF-8 where it lies: what is none is, byte by byte, U+FFFD to the pattern. */
export class OutputPattern {
  readonly #pattern: RE2JS;
  readonly #need: Need | undefined;
  /** The past that counts: so many bytes of it, which are at most WINDOW. */
  #past = Buffer.alloc(0);
  #pastLength = 0;
  /** Bytes that came before it. */
  #forgotten = 0;
  /** Which event each stretch came from, by where the stretch ends, counted from where the past begins. */
  #pieces: { seq: number; end: number }[] = [];

  /** RE2 syntax. @throws FIELD_INVALID for `pattern` */
  constructor(pattern: string) {
    this.#pattern = compilePattern(pattern);
    this.#need = needOf(this.#pattern);
  }

  /**
   * Seq of the event that holds the end of the first match, once the events have been added. What they
   * hold stands in `bytes` from MARGIN_BYTES on; before that the past is put.
   */
  find(events: readonly OutputEvent[], bytes: Buffer): number | undefined {
    if (events.length === 0) return undefined;
    let end = this.#pastLength;
    for (const { seq, data } of events) {
      end += data.length;
      this.#pieces.push({ seq, end });
    }
    const begin = MARGIN_BYTES - this.#pastLength;
    this.#past.copy(bytes, begin, 0, this.#pastLength);
    const text = bytes.subarray(begin, begin + end);
    const whole = text.subarray(0, wholeCharacters(text));
    // The quick questions first: they are asked of every passage and mostly answered by no.
    if (this.#need?.(whole, this.#forgotten) !== false && this.#pattern.test(whole)) {
      const match = this.#pattern.matcher(whole);
      if (match.find()) return this.#seqAt(match.end());
    }
    this.#keep(text);
    return undefined;
  }

  #seqAt(end: number): number | undefined {
    return (this.#pieces.find((piece) => piece.end >= end) ?? this.#pieces.at(-1))?.seq;
  }

  #keep(text: Buffer): void {
    let surplus = Math.max(text.length - WINDOW, 0);
    while (surplus > 0 && isContinuation(text[surplus])) surplus += 1;
    this.#pastLength = text.length - surplus;
    if (this.#past.length < this.#pastLength) this.#past = Buffer.allocUnsafeSlow(WINDOW);
    text.copy(this.#past, 0, surplus);
    this.#forgotten += surplus;
    for (const piece of this.#pieces) piece.end -= surplus;
    this.#pieces = this.#pieces.filter(({ end }) => end > 0);
  }
}

/** Bytes of the longest character in UTF-8. */
const LONGEST = 4;

/** Where the last character begins, if its end is yet to come; else the length. */
function wholeCharacters(bytes: Uint8Array): number {
  const { length } = bytes;
  let start = length - 1;
  while (start > length - LONGEST && isContinuation(bytes[start])) start -= 1;
  const lead = bytes[start] ?? 0;
  const size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;
  return start + size > length ? start : length;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
