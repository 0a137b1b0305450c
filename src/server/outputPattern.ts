/** Looks for a pattern in output that comes in pieces. */
import { RE2JS, RE2JSException } from 're2js';
import { fieldInvalid } from '../core/errors.js';
import type { OutputEvent } from '../core/event.js';

/** Bytes of a pattern. */
const MAX_PATTERN_BYTES = 1024;

/**
 * Instructions of a compiled pattern. Matching takes time in proportion to it, on the thread that
 * serves everybody; what people look for in output compiles to a few dozen.
 */
const MAX_PROGRAM_SIZE = 2_000;

/** Characters of past output in which a match can begin. */
const WINDOW = 64 * 1024;

export class OutputPattern {
  readonly #pattern: RE2JS;
  readonly #decoder = new TextDecoder();
  #text = '';
  /** Which event each stretch of `#text` came from, by where the stretch ends. */
  #pieces: { seq: number; end: number }[] = [];

  /** RE2 syntax. @throws FIELD_INVALID */
  constructor(field: string, pattern: string) {
    const bytes = Buffer.byteLength(pattern);
    if (bytes < 1 || bytes > MAX_PATTERN_BYTES) {
      throw fieldInvalid(field, `must have 1 to ${MAX_PATTERN_BYTES} bytes`);
    }
    this.#pattern = compile(field, pattern);
    if (this.#pattern.programSize() > MAX_PROGRAM_SIZE) throw fieldInvalid(field, 'is too complex');
  }

  /** Seq of the event that holds the end of the first match, once the events have been added. */
  find(events: readonly OutputEvent[]): number | undefined {
    for (const { seq, data } of events) {
      this.#text += this.#decoder.decode(data, { stream: true });
      this.#pieces.push({ seq, end: this.#text.length });
    }
    if (events.length === 0) return undefined;
    // The quick question first: it is asked of every batch and mostly answered by no.
    if (this.#pattern.test(this.#text)) {
      const match = this.#pattern.matcher(this.#text);
      if (match.find()) return this.#seqAt(match.end());
    }
    this.#forget();
    return undefined;
  }

  #seqAt(end: number): number | undefined {
    return (this.#pieces.find((piece) => piece.end >= end) ?? this.#pieces.at(-1))?.seq;
  }

  #forget(): void {
    const surplus = this.#text.length - WINDOW;
    if (surplus <= 0) return;
    this.#text = this.#text.slice(surplus);
    for (const piece of this.#pieces) piece.end -= surplus;
    this.#pieces = this.#pieces.filter(({ end }) => end > 0);
  }
}

function compile(field: string, pattern: string): RE2JS {
  try {
    return RE2JS.compile(pattern);
  } catch (error) {
    if (error instanceof RE2JSException)
      throw fieldInvalid(field, 'is no regular expression of RE2');
    throw error;
  }
}
