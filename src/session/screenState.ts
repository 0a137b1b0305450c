/** What a screen looks like at one moment, as plain data. */
import type { TerminalSize } from '../core/event.js';

export type ScreenFormat = 'text' | 'ansi';

/** How far the log was rendered, and what was left out. */
export interface Rendered {
  /** Seq of the last event that is rendered; 0: none. */
  readonly throughSeq: number;
  /** Output from this seq on was left out, up to the last 4 MiB then; said for the next 8 MiB. */
  readonly skippedFromSeq?: number;
}

export interface ScreenState extends Rendered {
  /** A row a line, trailing blanks cut; or escape sequences that draw it on a cleared terminal. */
  readonly screen: string;
  readonly size: TerminalSize;
  /** From 0; equal to the columns where the next character wraps. */
  readonly cursorColumn: number;
  readonly cursorRow: number;
  readonly cursorVisible: boolean;
  readonly alternateScreen: boolean;
  readonly title: string;
  /** Input helpers depend on these modes. */
  readonly modes: InputModes;
}

/** Modes that change what named keys and pastes send. */
export interface InputModes {
  /** DECCKM: cursor keys send SS3 sequences. */
  readonly applicationCursorKeys: boolean;
  /** The program takes pastes in brackets. */
  readonly bracketedPaste: boolean;
}
