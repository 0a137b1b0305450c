/** What the event loop and a screen worker say to each other. */
import type { ErrorReason, FieldViolation } from '../core/errors.js';
import type { TerminalSize } from '../core/event.js';
import type { ScreenLines } from './emulator.js';
import type { FoundText } from './findText.js';
import type { InputModes, Rendered, ScreenFormat, ScreenState } from './screenState.js';
import type { TerminalReadRequest, TerminalReadResult } from './sessionTypes.js';

/** One step of rendering, in this order: a gap, a new size, bytes. */
export interface Step {
  /** Rendered through this seq after the step. */
  readonly seq: number;
  /** Output from this seq on is left out before this step. */
  readonly skippedFromSeq?: number;
  /** Escape sequences that bring what was left out into effect, as far as it lasts. */
  readonly modes?: string;
  readonly size?: TerminalSize;
  readonly data?: Uint8Array;
}

export interface Questions {
  screen: { readonly ask: { readonly format: ScreenFormat }; readonly answer: ScreenState };
  page: { readonly ask: TerminalReadRequest; readonly answer: TerminalReadResult & Rendered };
  find: {
    readonly ask: { readonly pattern: string; readonly maxMatches?: number };
    readonly answer: FoundText & Rendered;
  };
  /** The next output for a scanner; answers the seq of the event in which the pattern first matched. */
  scan: {
    readonly ask: { readonly steps: readonly Step[] };
    readonly answer: { readonly matchedSeq?: number };
  };
}

export type QuestionKind = keyof Questions;

export type ToWorker =
  | {
      readonly op: 'open';
      readonly id: number;
      readonly size: TerminalSize;
      readonly mirrored: boolean;
    }
  | { readonly op: 'openScan'; readonly id: number; readonly pattern: string }
  | { readonly op: 'feed'; readonly id: number; readonly steps: readonly Step[] }
  | { readonly op: 'close'; readonly id: number }
  | {
      readonly [Kind in QuestionKind]: {
        readonly op: 'ask';
        readonly id: number;
        readonly call: number;
        readonly kind: Kind;
        readonly ask: Questions[Kind]['ask'];
      };
    }[QuestionKind];

export type FromWorker =
  | { readonly op: 'rendered'; readonly id: number; readonly seq: number }
  | { readonly op: 'mirror'; readonly id: number; readonly update: MirrorUpdate }
  /** The emulator of this id failed and is gone. */
  | { readonly op: 'broken'; readonly id: number; readonly failure: Failure }
  | { readonly op: 'answer'; readonly call: number; readonly answer: unknown }
  | { readonly op: 'failed'; readonly call: number; readonly failure: Failure };

/** An error as plain data. Without a reason it is a defect. */
export interface Failure {
  readonly reason?: ErrorReason;
  readonly message: string;
  readonly violations?: readonly FieldViolation[];
}

/** What changed in an emulator's lines since the update before. */
export interface MirrorUpdate extends Rendered, ScreenLines {
  /** Lines before this number are kept no more. */
  readonly droppedLines: number;
  /** Number of the first of `stored`. */
  readonly storedFrom: number;
  /** Lines that left the screen. */
  readonly stored: readonly string[];
  /** First seq that was left out since the update before. */
  readonly newSkip?: number;
  readonly modes: InputModes;
}
