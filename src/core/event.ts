/** One event of a terminal's log: what it means. How it is written stands in eventCodec.ts. */

/** Output bytes exactly as the PTY gave them. */
export interface OutputEvent {
  readonly type: 'pty.output';
  /** From 1, without gap, over all instances of the resource. */
  readonly seq: number;
  /** Wall clock, microseconds since the Unix epoch; may step back, seq never does. */
  readonly timeMicros: number;
  /** 1 to 65,536 bytes, never written to again; where they are lent, until the loan is given back. */
  readonly data: Uint8Array;
  /** The size the bytes were printed at: on the first output and on the first after a resize. */
  readonly size?: TerminalSize;
  /** Ordinal of the process instance; absent for the first. */
  readonly instance?: number;
}

/** The top-level process has ended and its output is complete. */
export interface ExitEvent extends ExitStatus {
  readonly type: 'process.exit';
  readonly seq: number;
  readonly timeMicros: number;
  readonly instance?: number;
}

export type TerminalEvent = OutputEvent | ExitEvent;

export interface ExitStatus {
  /** 0–255; 128+n when a signal n ended the process; absent when the supervisor was lost. */
  readonly exitCode?: number;
  /** Name of the signal that ended the process, e.g. `SIGTERM`. */
  readonly signal?: string;
  /** An `ExitReason`, or what another version has written; absent: the program or a caller ended it. */
  readonly reason?: string;
  /** Processes of the tree that outlived the top-level process, at the time of the exit. */
  readonly survivors?: number;
}

/** Character cells. */
export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}
