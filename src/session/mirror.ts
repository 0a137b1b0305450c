/** A copy of an emulator's lines on this side of the thread, for those who may not wait. */
import { keptLines } from './keptLines.js';
import type { LineView } from './linePage.js';
import { LineStore } from './lineStore.js';
import type { MirrorUpdate } from './screenProtocol.js';
import type { InputModes } from './screenState.js';

export class Mirror {
  #stored = new LineStore();
  #generation = 0;
  #normal: readonly string[] = [];
  #alternate: readonly string[] | undefined;
  throughSeq = 0;
  #skippedFromSeq: number | undefined;
  cursorBlanks = 0;
  modes: InputModes = { applicationCursorKeys: false, bracketedPaste: false };

  apply(update: MirrorUpdate): void {
    this.#stored.dropBefore(update.droppedLines);
    // What lies between was dropped there before it was sent.
    if (update.storedFrom > this.#stored.end) this.#stored.dropBefore(update.storedFrom);
    for (const line of update.stored) this.#stored.push(line);
    this.#normal = update.normal;
    this.#alternate = update.alternate;
    this.throughSeq = update.throughSeq;
    this.#skippedFromSeq ??= update.newSkip;
    this.cursorBlanks = update.cursorBlanks;
    this.modes = update.modes;
  }

  /** The emulator was lost: another begins to number its lines from 0. */
  restart(): void {
    this.#stored = new LineStore();
    this.#normal = [];
    this.#alternate = undefined;
    this.throughSeq = 0;
    this.#generation += 1;
  }

  /** First seq left out since the last call. */
  takeSkip(): number | undefined {
    const fromSeq = this.#skippedFromSeq;
    this.#skippedFromSeq = undefined;
    return fromSeq;
  }

  /** How often it was restarted. */
  get generation(): number {
    return this.#generation;
  }

  /** All lines that are kept. */
  lines(): LineView {
    return keptLines(this.#stored, [...this.#normal, ...(this.#alternate ?? [])]);
  }

  /** Number of the oldest line that has left the screen and is kept. */
  get firstStored(): number {
    return this.#stored.dropped;
  }

  /** A line that has left the screen, by its number. */
  stored(number: number): string {
    return this.#stored.at(number - this.#stored.dropped);
  }

  /** Number of the first line that the screen shows: what comes from there on may still change. */
  get firstShown(): number {
    return this.#stored.end;
  }

  /** Lines of the normal screen. */
  get normal(): readonly string[] {
    return this.#normal;
  }

  /** Rows of the alternate screen while a program shows it. */
  get alternate(): readonly string[] | undefined {
    return this.#alternate;
  }
}
