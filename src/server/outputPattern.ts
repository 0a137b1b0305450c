/** Looks for a pattern in output that comes in pieces. */
import type { RE2JS } from 're2js';
import type { OutputEvent } from '../core/event.js';
import { compilePattern } from '../session/pattern.js';

/** Bytes of past output in which a match can begin. */
const WINDOW = 64 * 1024;

/** Reads output as UTF-8 where it lies: what is none is, byte by byte, U+FFFD to the pattern. */
export class OutputPattern {
  readonly #pattern: RE2JS;
  /** The past that counts, and what has been added to it. */
  #bytes = Buffer.alloc(0);
  /** Which event each stretch of `#bytes` came from, by where the stretch ends. */
  #pieces: { seq: number; end: number }[] = [];

  /** RE2 syntax. @throws FIELD_INVALID for `pattern` */
  constructor(pattern: string) {
    this.#pattern = compilePattern(pattern);
  }

  /** Seq of the event that holds the end of the first match, once the events have been added. */
  find(events: readonly OutputEvent[]): number | undefined {
    if (events.length === 0) return undefined;
    this.#bytes = Buffer.concat([this.#bytes, ...events.map(({ data }) => data)]);
    let end = this.#pieces.at(-1)?.end ?? 0;
    for (const { seq, data } of events) {
      end += data.length;
      this.#pieces.push({ seq, end });
    }
    const whole = this.#bytes.subarray(0, wholeCharacters(this.#bytes));
    // The quick question first: it is asked of every batch and mostly answered by no.
    if (this.#pattern.test(whole)) {
      const match = this.#pattern.matcher(whole);
      if (match.find()) return this.#seqAt(match.end());
    }
    this.#forget();
    return undefined;
  }

  #seqAt(end: number): number | undefined {
    return (this.#pieces.find((piece) => piece.end >= end) ?? this.#pieces.at(-1))?.seq;
  }

  #forget(): void {
    let surplus = this.#bytes.length - WINDOW;
    if (surplus <= 0) return;
    while (isContinuation(this.#bytes[surplus])) surplus += 1;
    this.#bytes = this.#bytes.subarray(surplus);
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
