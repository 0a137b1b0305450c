/** Output that was read and is in no event yet, gathered so that it is copied once on its way there. */
import type { TerminalSize } from '../core/event.js';
import { borrowBlock } from '../core/eventBlocks.js';
import { MAX_EVENT_DATA_BYTES } from '../core/limits.js';
import type { Loan } from '../core/loan.js';

/** The bytes of one event, or a size that what follows was printed at. */
export type Pending =
  | { readonly kind: 'data'; readonly data: Buffer; readonly loan?: Loan | undefined }
  | { readonly kind: 'resized'; readonly size: TerminalSize };

/**
 * A lone chunk gets the memory that it needs. Where a second one follows, both go to a block and so
 * does what comes after: memory outside the heap is what makes a flood collect garbage, so as little
 * as can be is asked for.
 */
export class PendingOutput {
  #entries: Pending[] = [];
  /** How many of the entries are events. */
  #closed = 0;
  #bytes = 0;
  /** What the last event has so far … */
  #open: Buffer | undefined;
  /** … in so many bytes at the beginning of `#open`. */
  #filled = 0;
  /** Of `#open`, where that is a block. */
  #loan: Loan | undefined;

  /** Bytes that wait. */
  get bytes(): number {
    return this.#bytes;
  }

  get isEmpty(): boolean {
    return this.#open === undefined && this.#entries.length === 0;
  }

  /** Events that it makes up by now, the last of which may still grow. */
  get events(): number {
    return this.#closed + (this.#open === undefined ? 0 : 1);
  }

  /** Copies `chunk`, which may be of any length. */
  push(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    for (let at = 0; at < chunk.length; ) at += this.#fill(chunk.subarray(at));
  }

  resized(size: TerminalSize): void {
    this.cut();
    this.#entries.push({ kind: 'resized', size });
  }

  /** All that waits, in order; nothing waits then. */
  take(): readonly Pending[] {
    this.cut();
    const taken = this.#entries;
    this.#entries = [];
    this.#closed = 0;
    this.#bytes = 0;
    return taken;
  }

  /** Takes as much of `chunk` as the open event has room for; answers how much that was. */
  #fill(chunk: Uint8Array): number {
    if (this.#filled === MAX_EVENT_DATA_BYTES) this.cut();
    if (this.#open === undefined) {
      const first = chunk.subarray(0, MAX_EVENT_DATA_BYTES);
      this.#open = Buffer.from(first);
      this.#filled = first.length;
      return first.length;
    }
    if (this.#filled === this.#open.length) {
      const { bytes, loan } = borrowBlock();
      bytes.set(this.#open);
      this.#open = bytes.subarray(0, MAX_EVENT_DATA_BYTES);
      this.#loan = loan;
    }
    const part = chunk.subarray(0, this.#open.length - this.#filled);
    this.#open.set(part, this.#filled);
    this.#filled += part.length;
    return part.length;
  }

  /** What comes next begins an event of its own. One that fills less than half of its block does not keep it. */
  cut(): void {
    if (this.#open === undefined) return;
    const data = this.#open.subarray(0, this.#filled);
    const wasteful = this.#filled < this.#open.length / 2;
    this.#entries.push(
      wasteful
        ? { kind: 'data', data: Buffer.from(data) }
        : { kind: 'data', data, loan: this.#loan },
    );
    if (wasteful) this.#loan?.release();
    this.#closed += 1;
    this.#open = undefined;
    this.#filled = 0;
    this.#loan = undefined;
  }
}
