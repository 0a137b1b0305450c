/** How much input of an attachment is on its way: sent, and neither taken nor refused. */

/** Bytes on their way above which a sender waits; a quarter of what the server queues for a terminal. */
export const INPUT_WINDOW_BYTES = 256 * 1024;
/** Frames on their way above which a sender waits, whatever their size. */
export const INPUT_WINDOW_FRAMES = 1024;

interface Frame {
  readonly index: number;
  readonly bytes: number;
}

/** One stream's frames, in order. Acknowledgements count bytes over all streams of the attachment. */
export class InputWindow {
  #frames: Frame[] = [];
  /** Bytes of the first frame that have been acknowledged already. */
  #partial = 0;
  #bytes = 0;
  #acknowledged = 0;
  #waiting: (() => void)[] = [];

  /** Bytes of which nobody knows yet whether they were taken. */
  get bytes(): number {
    return this.#bytes;
  }

  get full(): boolean {
    return this.#bytes >= INPUT_WINDOW_BYTES || this.#frames.length >= INPUT_WINDOW_FRAMES;
  }

  sent(index: number, bytes: number): void {
    this.#frames.push({ index, bytes });
    this.#bytes += bytes;
  }

  /** `total` is the attachment's cumulative count; a smaller one than before says nothing new. */
  acknowledged(total: number): void {
    let fresh = Math.min(total - this.#acknowledged, this.#bytes);
    this.#acknowledged = Math.max(total, this.#acknowledged);
    while (fresh > 0) {
      const head = this.#frames[0];
      if (head === undefined) break;
      const step = Math.min(fresh, head.bytes - this.#partial);
      fresh -= step;
      this.#bytes -= step;
      this.#partial += step;
      if (this.#partial === head.bytes) {
        this.#frames.shift();
        this.#partial = 0;
      }
    }
    this.#wake();
  }

  /** The frame was refused; what the kernel took of it before has been acknowledged. */
  refused(index: number): void {
    const at = this.#frames.findIndex((frame) => frame.index === index);
    const frame = this.#frames[at];
    if (frame === undefined) return;
    this.#bytes -= frame.bytes - (at === 0 ? this.#partial : 0);
    if (at === 0) this.#partial = 0;
    this.#frames.splice(at, 1);
    this.#wake();
  }

  /**
   * A new stream: nothing is on its way on it. `total` as its `started` gives it.
   * @returns the bytes of the old stream that are not known to have been taken
   */
  restart(total: number): number {
    this.acknowledged(total);
    const lost = this.#bytes;
    this.#acknowledged = total;
    this.end();
    return lost;
  }

  /** Nothing is on its way any more. */
  end(): void {
    this.#frames = [];
    this.#partial = 0;
    this.#bytes = 0;
    this.#wake();
  }

  /** Resolves when something has changed. */
  changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
