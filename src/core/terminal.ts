/** The durable record of a terminal: what meta.json says, and its states. */
import type { ExitStatus, TerminalSize } from './event.js';
import type { LogRewind } from './logRewind.js';
import type { Name, TerminalTuple } from './names.js';

/**
 * created → running → exited, or → error when the process could not be started or its end was not
 * seen. A new instance leads from exited or error to running again.
 */
export const terminalStates = ['created', 'running', 'exited', 'error'] as const;
export type TerminalState = (typeof terminalStates)[number];

/** What becomes of processes that outlive the top-level one: left alone, or ended. */
export type OnExit = 'leave' | 'sweep';

/** Whose authority a terminal was created or last started by: what budgets are charged to. No secret. */
export interface CreatedBy {
  /** Of the token at the root. */
  readonly issuer: string;
  readonly subject: string;
  /** Root grant first, then each ancestor, down to the grant that was used. */
  readonly grants: readonly string[];
  /** Whom each grant after the root's was delegated to; absent when there is none. */
  readonly actors?: readonly string[];
}

/** Marks by which a later supervisor recognises the processes of an instance. */
export interface ProcessMarks {
  /** The random CTX_INSTANCE of the instance's environment. */
  readonly nonce: string;
  /** Start time of the top-level process, clock ticks since boot (proc(5), field 22 of stat). */
  readonly startTime: number;
  /** /proc/sys/kernel/random/boot_id. */
  readonly bootId: string;
}

export interface TerminalRecord extends TerminalTuple {
  readonly owner: Name;
  readonly cwd: string;
  /** argv; the first element as the caller named it. */
  readonly command: readonly string[];
  readonly state: TerminalState;
  /** Locator of the service while a process lives. */
  readonly socket?: string;
  /** Seconds since the Unix epoch. */
  readonly createdAt: number;
  /** Random; another one for each incarnation of an id. */
  readonly uid: string;
  /** Ordinal of the latest process instance, from 1; 0 before the first. */
  readonly instance: number;
  readonly pid?: number;
  readonly marks?: ProcessMarks;
  readonly size: TerminalSize;
  readonly title: string;
  readonly labels: Readonly<Record<string, string>>;
  /** What started it: `command` for a plain terminal, else the session backend's type. */
  readonly backend: string;
  /** Display name, empty when none was given. */
  readonly name: string;
  readonly onExit: OnExit;
  readonly createdBy?: CreatedBy;
  /** Present when state is exited or error. */
  readonly exit?: ExitStatus;
  /** Milliseconds since the Unix epoch. */
  readonly exitedAt?: number;
  /** Milliseconds since the Unix epoch. */
  readonly updatedAt: number;
  /** Raised when a power cut may have taken events that a client had seen. */
  readonly logEpoch: number;
  /** What of each earlier epoch survived, oldest first; absent when none was lost. */
  readonly logRewinds?: readonly LogRewind[];
  /** The create request that made it, so that a retry finds it. */
  readonly request?: RequestMark;
  /** The start request that made the latest instance; absent for the first, and where it had no mark. */
  readonly startRequest?: RequestMark;
}

/** What makes a retried request recognisable. */
export interface RequestMark {
  /** Hash over (issuer, subject, method, ref, request id). */
  readonly key: string;
  /** Hash over the request's body. */
  readonly bodyHash: string;
}

export function isLive(state: TerminalState): boolean {
  return state === 'created' || state === 'running';
}
