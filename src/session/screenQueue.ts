/** Output on its way to an emulator, which may be slower than the output. */
import type { TerminalEvent, TerminalSize } from '../core/event.js';
import { LeftOutModes } from './leftOutModes.js';
import { MAX_SCROLLBACK_LINES } from './lineStore.js';
import { countLineFeeds, lastScroll } from './plainScroll.js';
import type { Step } from './screenProtocol.js';

/**
 * What an emulator may be behind. Above either, when it takes more, all but this much of the newest
 * is left out: 4 MiB, or the line feeds that fill the scrollback and the tallest screen anew.
 */
export const MAX_BEHIND_BYTES = 4 * 1024 * 1024;
export const MAX_BEHIND_LINES = MAX_SCROLLBACK_LINES + 1_000;

/** Bytes that may wait while the emulator takes nothing at all; then it is cut as above. */
const MAX_WAITING_BYTES = 2 * MAX_BEHIND_BYTES;

/** Bytes looked through, at a cut, for a place where no sequence or character is in the middle. */
const MAX_RESYNC_BYTES = 256;

interface Waiting extends Step {
  readonly lineFeeds: number;
}

export class ScreenQueue {
  #steps: Waiting[] = [];
  #bytes = 0;
  #lineFeeds = 0;

  get empty(): boolean {
    return this.#steps.length === 0;
  }

  push(event: TerminalEvent): void {
    const { seq } = event;
    if (event.type === 'process.exit') this.#add({ seq, lineFeeds: 0 });
    else {
      const { data, size } = event;
      this.#add({ seq, data, lineFeeds: countLineFeeds(data), ...(size && { size }) });
      if (this.#bytes > MAX_WAITING_BYTES) this.#cut();
    }
  }

  /** `seq`: of the last event before. */
  resized(size: TerminalSize, seq: number): void {
    this.#add({ seq, size, lineFeeds: 0 });
  }

  /** What is pushed next is the event after `seq`; output from `skippedFromSeq` on is left out. */
  begin(seq: number, skippedFromSeq?: number): void {
    this.#add({ seq, lineFeeds: 0, ...(skippedFromSeq !== undefined && { skippedFromSeq }) });
  }

  /** The next steps, of about `maxBytes`; one at least. */
  take(maxBytes: number): Step[] {
    if (this.#behind) this.#cut();
    let count = 0;
    let bytes = 0;
    while (count < this.#steps.length && bytes < maxBytes) {
      bytes += this.#steps[count]?.data?.length ?? 0;
      count += 1;
    }
    const taken = this.#steps.splice(0, count);
    for (const step of taken) this.#count(step, -1);
    return taken;
  }

  clear(): void {
    this.#steps = [];
    this.#bytes = 0;
    this.#lineFeeds = 0;
  }

  #add(step: Waiting): void {
    this.#steps.push(step);
    this.#count(step, 1);
  }

  #count({ data, lineFeeds }: Waiting, sign: 1 | -1): void {
    this.#bytes += sign * (data?.length ?? 0);
    this.#lineFeeds += sign * lineFeeds;
  }

  /**
   * Leaves out, where output is left out anyway, all that cannot be seen on a screen of so many rows:
   * what stands before so many lines without cursor movements that they scroll the whole screen away.
   * For an emulator that has rendered nothing. @returns whether there was such a place
   */
  cutToScreen(rows: number): boolean {
    const isGap = this.#steps.some(({ skippedFromSeq }) => skippedFromSeq !== undefined);
    if (!this.#behind && !isGap) return false;
    const begin = lastScroll(this.#steps, 2 * rows);
    if (begin <= 0) return false;
    const modes = new LeftOutModes();
    for (const step of this.#steps.slice(0, begin)) note(modes, step);
    if (!modes.scrollsWhole) return false;
    this.#leaveOut(begin);
    return true;
  }

  #cut(): void {
    let bytes = this.#bytes;
    let lineFeeds = this.#lineFeeds;
    let count = 0;
    while (count < this.#steps.length - 1 && isBehind(bytes, lineFeeds)) {
      const step = this.#steps[count];
      bytes -= step?.data?.length ?? 0;
      lineFeeds -= step?.lineFeeds ?? 0;
      count += 1;
    }
    this.#leaveOut(count);
  }

  /** Leaves out the first `count` steps; the one after says so and goes on where one can. */
  #leaveOut(count: number): void {
    const modes = new LeftOutModes();
    let skippedFromSeq: number | undefined;
    let size: TerminalSize | undefined;
    for (const step of this.#steps.splice(0, count)) {
      this.#count(step, -1);
      skippedFromSeq ??= step.skippedFromSeq ?? (step.data && step.seq);
      size = step.size ?? size;
      note(modes, step);
    }
    const first = this.#steps.shift();
    if (!first) return;
    this.#count(first, -1);
    const { seq } = first;
    const gap = skippedFromSeq ?? first.skippedFromSeq;
    const sizeBefore = first.size ?? size;
    const begin = gap === undefined || !first.data ? 0 : placeToGoOn(first.data);
    const data = first.data?.subarray(begin);
    note(modes, { modes: first.modes ?? '' });
    if (first.data) modes.note(first.data.subarray(0, begin));
    const kept: Waiting = {
      seq,
      lineFeeds: data ? countLineFeeds(data) : 0,
      ...(gap !== undefined && { skippedFromSeq: gap, modes: modes.sequence() }),
      ...(sizeBefore && { size: sizeBefore }),
      ...(data && { data }),
    };
    this.#steps.unshift(kept);
    this.#count(kept, 1);
  }

  get #behind(): boolean {
    return isBehind(this.#bytes, this.#lineFeeds);
  }
}

function isBehind(bytes: number, lineFeeds: number): boolean {
  return bytes > MAX_BEHIND_BYTES || lineFeeds > MAX_BEHIND_LINES;
}

function note(modes: LeftOutModes, step: Pick<Step, 'modes' | 'data'>): void {
  if (step.modes) modes.note(Buffer.from(step.modes));
  if (step.data) modes.note(step.data);
}

/** Where in `data` an escape sequence or a line begins, if that is near; else 0. */
function placeToGoOn(data: Uint8Array): number {
  const end = Math.min(data.length, MAX_RESYNC_BYTES);
  for (let index = 0; index < end; index += 1) {
    const byte = data[index];
    if (byte === 0x0a || byte === 0x1b) return index;
  }
  return 0;
}
