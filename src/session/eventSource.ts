/** Where screens and sessions get a terminal's events from: what their host gives them. */
import type { TerminalSize } from '../core/event.js';
import type { LiveItem, TerminalKey } from '../supervisor/api.js';

/** How far a terminal's log goes at one moment. */
export interface LogRange {
  /** Seq of the oldest event that can be read; equal to `nextSeq` when there is none. */
  readonly firstSeq: number;
  readonly nextSeq: number;
  /** The terminal's size now. */
  readonly size: TerminalSize;
}

/**
 * History and live output of terminals as one sequence. All methods may reject with
 * TERMINAL_NOT_FOUND and SUPERVISOR_UNAVAILABLE.
 */
export interface EventSource {
  range(key: TerminalKey): Promise<LogRange>;
  /** Smallest seq from which on, through `throughSeq`, at most about `bytes` of output lie. */
  tailSeq(key: TerminalKey, bytes: number, throughSeq: number): Promise<number>;
  /**
   * Every event from `fromSeq` on, without gap or duplicate, and each resize at its place as far as
   * it is known; goes on over exits until the signal fires or the terminal is deleted. A consumer
   * that does not take them loses nothing: the source turns to the log.
   */
  follow(key: TerminalKey, fromSeq: number, signal: AbortSignal): AsyncIterable<LiveItem>;
}
