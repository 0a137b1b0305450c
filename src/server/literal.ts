/** Looks for a fixed run of bytes by one byte of it that is rare where it looks. */

/** Times that the byte is met without the rest, in one search, after which another one is tried. */
const MAX_MISSES = 32;

export class Literal {
  readonly #bytes: Buffer;
  /** Which of the bytes is looked for: one in which the text is poor is found at memory's speed. */
  #chosen = 0;

  /** At least one byte. */
  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes);
  }

  get length(): number {
    return this.#bytes.length;
  }

  /** As `text.indexOf(bytes, from)`. */
  indexIn(text: Buffer, from: number): number {
    const chosen = this.#chosen;
    let start = from;
    for (let misses = 0; misses < MAX_MISSES; misses++) {
      start = text.indexOf(this.#bytes[chosen] ?? 0, start + chosen) - chosen;
      if (start < from) return -1;
      if (this.#standsAt(text, start)) return start;
      start++;
    }
    this.#chosen = (chosen + 1) % this.#bytes.length;
    return text.indexOf(this.#bytes, start);
  }

  #standsAt(text: Buffer, start: number): boolean {
    return this.#bytes.every((byte, i) => text[start + i] === byte);
  }
}
