/** Looks for a pattern in output that comes in pieces. */
import type { RE2JS } from 're2js';
import type { OutputEvent } from '../core/event.js';
import { compilePattern } from '../session/pattern.js';

/** Characters of past output in which a match can begin. */
const WINDOW = 64 * 1024;

export class OutputPattern {
  readonly #pattern: RE2JS;
  readonly #decoder = new TextDecoder();
  #text = '';
  /** Which event each stretch of `#text` came from, by where the stretch ends. */
  #pieces: { seq: number; end: number }[] = [];

  /** RE2 syntax. @throws FIELD_INVALID for `pattern` */
  constructor(pattern: string) {
    this.#pattern = compilePattern(pattern);
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
