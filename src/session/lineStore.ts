/** Lines that have left the screen, oldest first, up to the limits of scrollback. */

export const MAX_SCROLLBACK_LINES = 10_000;
/** In UTF-8, line feeds included. */
export const MAX_SCROLLBACK_BYTES = 4 * 1024 * 1024;

/** Dropped entries that an array keeps before it is cut. */
const SLACK = 4_096;

/** Above either limit the oldest lines are dropped and counted, so that a number names a line for good. */
export class LineStore {
  #lines: string[] = [];
  /** Entries at the front of `#lines` that were dropped. */
  #head = 0;
  #bytes = 0;
  #dropped = 0;

  /** Lines dropped so far: the number of the oldest line kept. */
  get dropped(): number {
    return this.#dropped;
  }

  get length(): number {
    return this.#lines.length - this.#head;
  }

  /** Number of the next line. */
  get end(): number {
    return this.#dropped + this.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  push(line: string): void {
    this.#lines.push(line);
    this.#bytes += Buffer.byteLength(line) + 1;
    while (this.length > MAX_SCROLLBACK_LINES || this.#bytes > MAX_SCROLLBACK_BYTES) this.#drop();
  }

  /** The line `index` lines after the oldest kept. */
  at(index: number): string {
    return this.#lines[this.#head + index] ?? '';
  }

  /** Lines from number `from` on that are still kept. */
  since(from: number): string[] {
    return this.#lines.slice(this.#head + Math.max(0, from - this.#dropped));
  }

  /** Drops the lines before number `first`, and counts those among them that never came here. */
  dropBefore(first: number): void {
    while (this.#dropped < first && this.length > 0) this.#drop();
    this.#dropped = Math.max(this.#dropped, first);
  }

  #drop(): void {
    this.#bytes -= Buffer.byteLength(this.at(0)) + 1;
    this.#lines[this.#head] = '';
    this.#head += 1;
    this.#dropped += 1;
    if (this.#head < SLACK) return;
    this.#lines = this.#lines.slice(this.#head);
    this.#head = 0;
  }
}
