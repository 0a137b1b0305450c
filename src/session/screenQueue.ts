/** Output on its way to an emulator, which may be slower than the output. */
import type { TerminalEvent, TerminalSize } from '../core/event.js';
import { MAX_SCROLLBACK_LINES } from './lineStore.js';
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

  #cut(): void {
    let skippedFromSeq: number | undefined;
    let size: TerminalSize | undefined;
    while (this.#steps.length > 1 && this.#behind) {
      const step = this.#steps.shift();
      if (!step) break;
      this.#count(step, -1);
      skippedFromSeq ??= step.skippedFromSeq ?? (step.data && step.seq);
      size = step.size ?? size;
    }
    const first = this.#steps.shift();
    if (!first) return;
    this.#count(first, -1);
    const gap = skippedFromSeq ?? first.skippedFromSeq;
    const sizeBefore = first.size ?? size;
    const data = gap === undefined ? first.data : first.data && resync(first.data);
    const kept: Waiting = {
      seq: first.seq,
      lineFeeds: data ? countLineFeeds(data) : 0,
      ...(gap !== undefined && { skippedFromSeq: gap }),
      ...(sizeBefore && { size: sizeBefore }),
      ...(data && { data }),
    };
    this.#steps.unshift(kept);
    this.#count(kept, 1);
  }

  get #behind(): boolean {
    return this.#bytes > MAX_BEHIND_BYTES || this.#lineFeeds > MAX_BEHIND_LINES;
  }
}

/** `data` from a place on where an escape sequence or a line begins, if one is near. */
function resync(data: Uint8Array): Uint8Array {
  const end = Math.min(data.length, MAX_RESYNC_BYTES);
  for (let index = 0; index < end; index += 1) {
    const byte = data[index];
    if (byte === 0x0a || byte === 0x1b) return data.subarray(index);
  }
  return data;
}

function countLineFeeds(data: Uint8Array): number {
  let count = 0;
  for (let index = 0; index < data.length; index += 1) if (data[index] === 0x0a) count += 1;
  return count;
}
