/** What a send made of the screen: the lines that changed since they were last taken. */
import { newestLines } from './linePage.js';
import type { Mirror } from './mirror.js';

/** UTF-8 bytes of one delta or viewport; older lines are dropped first. */
export const MAX_DELTA_BYTES = 256 * 1024;

export interface DeltaText {
  readonly text: string;
  /** Lines that belong here were dropped. */
  readonly truncated: boolean;
  /** Output from this seq on was left out of it. */
  readonly skippedFromSeq?: number;
}

/**
 * One consuming cursor. A delta is all from the first line on that differs from what was taken
 * before. The last line taken is open: what is added to it is all that is given of it, and anything
 * else begins with a line feed, so that deltas read well one after the other. While a program shows
 * the alternate screen, that is given whole whenever it changed.
 */
export class RenderedDelta {
  /** Number of the first line that could still change when the delta was last taken. */
  #from: number;
  /** Text of the lines from there, as it was taken. */
  #taken: readonly string[];
  #alternate: string | undefined;
  #generation: number;

  constructor(private readonly mirror: Mirror) {
    this.#from = mirror.firstShown;
    this.#taken = shownLines(mirror);
    this.#alternate = mirror.alternate?.join('\n');
    this.#generation = mirror.generation;
  }

  take(): DeltaText {
    const { mirror } = this;
    const restarted = mirror.generation !== this.#generation;
    if (restarted) {
      this.#generation = mirror.generation;
      this.#from = 0;
      this.#taken = [];
    }
    const untaken = this.#from + Math.max(0, this.#taken.length - 1);
    const skippedFromSeq = mirror.takeSkip();
    const skipped = skippedFromSeq !== undefined;
    const lost = restarted || mirror.firstStored > untaken || skipped;
    const changed = this.#changedLines();
    const alternate = mirror.alternate?.join('\n');
    if (alternate !== undefined && alternate !== this.#alternate) {
      if (changed.length === 0 && this.#alternate !== undefined) changed.push('');
      if (changed.at(-1) === '' && changed.length > 1) changed.pop();
      changed.push(...alternate.split('\n'));
    }
    this.#from = mirror.firstShown;
    this.#taken = shownLines(mirror);
    this.#alternate = alternate;
    const { text, begin } = newestLines(
      { droppedLines: 0, totalLines: changed.length, line: (index) => changed[index] ?? '' },
      0,
      changed.length,
      MAX_DELTA_BYTES,
    );
    return {
      text: text.slice(0, -1),
      truncated: lost || begin > 0,
      ...(skipped && { skippedFromSeq }),
    };
  }

  #changedLines(): string[] {
    const { mirror } = this;
    const current = shownLines(mirror);
    const { firstShown } = mirror;
    const begin = Math.max(this.#from, mirror.firstStored);
    const lineAt = (number: number) =>
      number < firstShown ? mirror.stored(number) : current[number - firstShown];
    const end = firstShown + current.length;
    const lastTaken = this.#from + this.#taken.length - 1;
    let number = begin;
    while (number < end && number <= lastTaken && sameLine(lineAt(number), this.#takenAt(number))) {
      number += 1;
    }
    const lines: string[] = [];
    for (let next = number; next < end; next += 1) lines.push(lineAt(next) ?? '');
    const [first] = lines;
    if (first === undefined || this.#taken.length === 0) return lines;
    const open = number === lastTaken ? this.#takenAt(number) : undefined;
    if (open === undefined || !first.startsWith(open)) return ['', ...lines];
    return [first.slice(open.length), ...lines.slice(1)];
  }

  #takenAt(number: number): string | undefined {
    return this.#taken[number - this.#from];
  }
}

/** Blanks up to the cursor belong to a line only while the cursor stands there. */
function sameLine(line: string | undefined, taken: string | undefined): boolean {
  return line === taken || line?.trimEnd() === taken?.trimEnd();
}

/** Lines of the normal screen, the last one as far as the cursor. */
function shownLines({ normal, cursorBlanks }: Mirror): readonly string[] {
  if (cursorBlanks === 0) return normal;
  return [...normal.slice(0, -1), `${normal.at(-1) ?? ''}${' '.repeat(cursorBlanks)}`];
}
