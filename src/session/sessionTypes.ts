/** The vocabulary of persistent PTY sessions: what backends, the service and its callers share. */
import type { TerminalSize } from '../core/event.js';
import type { CreatedBy, RequestMark } from '../core/terminal.js';
import type { TerminalSnapshot } from '../supervisor/api.js';
import type { Agent } from './agent.js';
import type { LeaseSource } from './leaseSource.js';

/** Issued by the service, never chosen by a caller; also the id of the session's durable terminal. */
export type TerminalSessionId = string & { readonly __brand: 'TerminalSessionId' };

/** Why one interactive send returned control to its caller. */
export type TerminalWaitReason = 'stdin_read' | 'inferred_idle' | 'timeout' | 'session_exit';

/**
 * Top-level PTY process status, independent of a send's wait reason. A process that a signal ended
 * has that signal and a null exit code; when its end was not seen, both are null.
 */
export type TerminalSessionStatus =
  | { kind: 'running' }
  | { kind: 'exited'; exitCode: number | null; signal: NodeJS.Signals | null };

/** What `signal` delivers. */
export const terminalSignals = ['SIGINT', 'SIGTERM', 'SIGKILL', 'SIGTSTP', 'SIGHUP'] as const;
export type TerminalSignal = (typeof terminalSignals)[number];

export interface TerminalSignalResult {
  delivered: boolean;
  /** The foreground process group, as the kernel named it when the signal was sent. */
  targetPgid: number;
}

/** Replaceable provider for one PTY session type. */
export interface TerminalBackend {
  /** Stable type selected by {@link TerminalSpawnRequest.type}. */
  readonly type: string;
  /** Create an unpublished session or reject after cleaning partial resources; cleanup failure uses {@link TerminalBackendCleanupError}. */
  spawn(spec: TerminalBackendSpawnSpec): Promise<TerminalBackendSession>;
}

/** Backend-owned live session retained by {@link TerminalSessionService}. */
export interface TerminalBackendSession {
  /** Initial bounded terminal output returned from `terminal_open`. */
  readonly motd: string;
  /** Top-level process id when one exists. */
  readonly pid?: number | undefined;
  /** Start one exclusive send operation. */
  startSend(request: TerminalSendRequest): TerminalSendOperation;
  /** Read one bounded page from retained scrollback. */
  read(request: TerminalReadRequest): TerminalReadResult;
  /** Signal the verified foreground process group. */
  signal(signal: TerminalSignal): Promise<TerminalSignalResult>;
  /** Observe top-level process status. */
  status(): TerminalSessionStatus;
  /** Idempotently close the captured owned process tree and await quiescence. */
  close(reason: string): Promise<void>;
  /**
   * For hosts that start the terminals of exited sessions again: goes on with the new process. A
   * backend without it stays exited.
   */
  restarted?(terminal: TerminalSnapshot): Promise<void>;
}

/** Live backend-owned send; exactly one may be active per PTY session. */
export interface TerminalSendOperation {
  /** Resolves after readiness, timeout, cancellation, or top-level process exit. */
  done: Promise<TerminalSendResult>;
  /** Consume output produced since the prior call. */
  readOutput(): TerminalSendRead;
  /** Request `SIGINT`; returns false after the operation settled. */
  cancel(): boolean;
}

/** Settled result for one foreground or background send. */
export interface TerminalSendResult {
  /** Bounded rendered terminal delta remaining at settlement. */
  viewport: string;
  /** Why the wait returned; this does not imply arbitrary child-process exit. */
  waitReason: TerminalWaitReason;
  /** Top-level session status observed at settlement. */
  sessionStatus: TerminalSessionStatus;
  /** Whether output was dropped from the operation or retained scrollback. */
  truncated: boolean;
}

/** What a session is to be. Only `type` is required. */
export interface TerminalSpawnRequest {
  /** Type of a registered backend. */
  type: string;
  /** Owner-local display name; taken from the begin of `spawn` to the end of `kill`. */
  name?: string;
  /** Absolute. Absent: the owner's home. */
  cwd?: string;
  /** What only a durable terminal has. */
  resource?: TerminalResourceRequest;
}

/** The part of a spawn that the durable terminal behind a session is made of. */
export interface TerminalResourceRequest {
  /** Session of the agent in the terminal's tuple. Absent: `default`. */
  readonly session?: string;
  /** Absent: what the backend was made with. */
  readonly command?: readonly string[];
  /** Absent: 160 columns, 40 rows. */
  readonly size?: TerminalSize;
  /** The request's variables: authority over them has been decided. */
  readonly env?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly title?: string;
  /** When present, the resolved cwd must be one of these absolute paths or below one. */
  readonly cwdUnder?: readonly string[];
  readonly createdBy?: CreatedBy;
  readonly request?: RequestMark;
  /** Authority for set-up, close, and for sends that bring none. Absent: the backend's. */
  readonly leases?: LeaseSource;
  /**
   * Takes over this living terminal, which a session of an earlier process left behind, instead of
   * making one: all else but `leases` is as it was made.
   */
  readonly adopt?: TerminalSnapshot;
}

export interface TerminalSpawnResult extends TerminalSessionSnapshot {
  /** What the session printed until it was ready, rendered and bounded. */
  motd: string;
}

export interface TerminalSessionSnapshot {
  sessionId: TerminalSessionId;
  name?: string;
  type: string;
  pid?: number;
  status: TerminalSessionStatus;
}

/** What a backend is asked to start. */
export interface TerminalBackendSpawnSpec {
  readonly sessionId: TerminalSessionId;
  readonly owner: Agent;
  readonly name?: string;
  readonly cwd?: string;
  readonly resource: TerminalResourceRequest;
  /** Aborts the set-up: the backend cleans up and rejects with the signal's reason. */
  readonly signal: AbortSignal;
}

export interface TerminalSendRequest {
  /** Typed as it is, in UTF-8; see sendInput.ts for named keys and pastes. */
  text: string;
  /** Whether Enter is pressed after it. */
  submit: boolean;
  /** Aborting it is `cancel()`. One that is aborted already stops the send before it types. */
  signal?: AbortSignal;
  /** Milliseconds to wait at most. Absent: 30 s. */
  timeoutMs?: number;
  /** Under whose authority it types and interrupts. Absent: the backend's own. */
  leases?: LeaseSource;
  /** A text with this mark is typed once, also by a later process. Absent: each time. */
  mark?: RequestMark;
}

/** What one `readOutput` consumed. */
export interface TerminalSendRead {
  /** Rendered text: what was printed, or printed over, since the call before. */
  delta: string;
  /** Whether text before this delta was dropped since the call before. */
  truncated: boolean;
}

export interface TerminalReadRequest {
  /** Lines to leave out, counted back from the newest. Absent: 0. */
  offset?: number;
  /** Lines of the page, which end before the offset; 1–500. Absent: 500. */
  count?: number;
}

/** One page of retained lines; a line that the terminal wrapped is one line here. */
export interface TerminalReadResult {
  /** Each line ends with a line feed; trailing blanks are cut. At most 256 KiB. */
  text: string;
  /** Lines that are kept. */
  totalLines: number;
  /** First line of the page, from 0 at the oldest kept. */
  lineBegin: number;
  /** After the last line of the page. */
  lineEnd: number;
  /** Older lines are kept no more, or the page was cut short at its limit of bytes. */
  truncated: boolean;
  /** Lines dropped before the oldest kept: `droppedLines + lineBegin` names a line for good. */
  droppedLines: number;
}
