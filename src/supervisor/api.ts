/**
 * The interface between the server, which decides, and the supervisor, which owns PTYs, process
 * trees and files. All methods are asynchronous; arguments and results are plain data, so that one
 * adapter can live in the caller's process and another across a Unix socket.
 *
 * The supervisor knows nothing of gRPC, tokens or policy. Whoever holds a `Supervisor` may do
 * anything; the caller has decided already. What the supervisor knows of authority is a `Lease`.
 *
 * Failures are `GranttyError`s with the reasons each method names; SUPERVISOR_UNAVAILABLE is
 * possible everywhere. Anything else that is thrown is a defect.
 */
import type { ExitStatus, TerminalEvent, TerminalSize } from '../core/event.js';
import type { Loan } from '../core/loan.js';
import type { Name, TerminalTuple } from '../core/names.js';
import type { SignalName } from '../core/signals.js';
import type { CreatedBy, OnExit, RequestMark, TerminalRecord } from '../core/terminal.js';

/** Names a terminal. With `uid` only that incarnation of the id is meant: another is TERMINAL_NOT_FOUND. */
export interface TerminalKey {
  readonly owner: Name;
  readonly id: Name;
  readonly uid?: string;
}

/**
 * The right to one effect, as the supervisor sees it: an opaque name that can be fenced, and an
 * end. Checked immediately before each write to a PTY, resize and signal, so that nothing decided
 * under it acts later than `notAfter` or after `fence` has answered.
 */
export interface Lease {
  readonly id: string;
  /** Milliseconds since the Unix epoch. */
  readonly notAfter: number;
  /** A second name to fence it by: the connection that it came by, put there on arrival. */
  readonly scope?: string;
}

/** Who runs the children; see the isolation modes in docs/architecture.md. */
export type IsolationMode = 'by-uid' | 'fixed-user' | 'shared-uid';

export interface SupervisorInfo {
  readonly isolation: IsolationMode;
  /** Random, made with the state directory; two processes that agree on it mean the same files. */
  readonly stateDirId: string;
  readonly pid: number;
  readonly version: string;
  readonly maxLiveTerminals: number;
  readonly maxLiveTerminalsPerOwner: number;
  /** Milliseconds that an instance may live, and go without input, output and attachment. */
  readonly life: { readonly idleMs?: number; readonly lifetimeMs?: number };
}

export interface TerminalSnapshot {
  readonly record: TerminalRecord;
  /** Seq of the oldest event that can be read; equal to `nextSeq` when there is none. */
  readonly firstSeq: number;
  /** Seq that the next event will have. */
  readonly nextSeq: number;
  readonly attachments: readonly AttachmentInfo[];
  /** Why output is held back, when it is. */
  readonly paused?: 'log-unwritable' | 'log-quota';
}

/** A part of a list: `limit` terminals at most, those that come next after `after`, or the first. */
export interface ListPart {
  readonly after?: Pick<TerminalKey, 'owner' | 'id'>;
  readonly limit: number;
}

export interface AttachmentSpec {
  /** Resumes the attachment of this id, if the principal has it; else a new one is made. */
  readonly attachmentId?: string;
  readonly kind: 'agent' | 'human' | 'service';
  /** Subject and outermost actor of the attaching token. */
  readonly subject: string;
  readonly actor?: string;
  /** Whose budget of attachments it counts against: (issuer, subject). */
  readonly principal: string;
}

export interface AttachmentInfo extends Omit<AttachmentSpec, 'attachmentId' | 'principal'> {
  readonly attachmentId: string;
  /** Milliseconds since the Unix epoch. */
  readonly since: number;
  /** Whether it has sent input yet. */
  readonly mode: 'read' | 'read-write';
}

export interface CreateSpec {
  readonly tuple: TerminalTuple;
  /** argv, one element at least; the first a path or a name to be found on the child's PATH. */
  readonly command: readonly string[];
  /** Absolute. */
  readonly cwd: string;
  /** When present, the resolved cwd must be one of these absolute paths or below one. */
  readonly cwdUnder?: readonly string[];
  /** The request's variables, already allowed; the supervisor adds its own. */
  readonly env: Readonly<Record<string, string>>;
  readonly size: TerminalSize;
  readonly title: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly name: string;
  readonly backend: string;
  readonly onExit: OnExit;
  readonly createdBy?: CreatedBy;
  /** A later create with the same key and body answers with the terminal this one made. */
  readonly request?: RequestMark;
}

export interface StartSpec {
  readonly size?: TerminalSize;
  readonly cwdUnder?: readonly string[];
  /** Takes the place of the one on record, once the instance runs. */
  readonly createdBy?: CreatedBy;
  readonly request?: RequestMark;
}

/** What a new instance would run: checked against the caller's grant before `start`. */
export interface LaunchPlan {
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

export interface UpdateSpec {
  readonly title?: string;
  /** Replaces all labels. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** What runs when a create names no command or no cwd. */
export interface OwnerDefaults {
  readonly command: readonly string[];
  readonly cwd: string;
}

export interface WriteSpec {
  /** 1 byte to 64 KiB, written whole and never interleaved with other input. */
  readonly data: Uint8Array;
  readonly lease: Lease;
  readonly request?: RequestMark;
}

export interface WriteResult {
  /** Seq of the last event before the write; 0 when there was none. */
  readonly lastSeq: number;
}

export interface EndSpec {
  readonly lease: Lease;
}

export interface StopSpec extends EndSpec {
  /** Milliseconds to wait for the tree to end. */
  readonly graceMs: number;
}

/** What stop and kill found when they had waited. */
export interface EndResult {
  readonly survivors: readonly SurvivingProcess[];
  /** No process of the tree lives. */
  readonly quiescent: boolean;
  /** Whether the kernel vouches for that (a cgroup) or a scan of /proc did. */
  readonly certain: boolean;
  readonly exit?: ExitStatus;
}

export interface SurvivingProcess {
  readonly pid: number;
  /** The kernel's name of it: up to 15 bytes of the executable's name. */
  readonly comm: string;
}

export interface SignalResult {
  /** The foreground process group that got the signal. */
  readonly processGroup: number;
}

/** Whether the terminal's foreground waits for input. `unknown` when /proc does not say. */
export interface ForegroundState {
  readonly processGroup?: number;
  readonly shellInForeground: boolean;
  readonly waitingForInput: 'yes' | 'no' | 'unknown';
}

/**
 * Live output of one terminal from `nextSeq` on, without gap. Each event has been written to the
 * log before it is given. Ends when the terminal is deleted, the supervisor stops, or the signal
 * fires; an end of the process does not end it. A consumer that falls 8 MiB behind gets
 * SUPERVISOR_UNAVAILABLE: it reads the log and opens the output again.
 */
export interface LiveOutput {
  readonly nextSeq: number;
  readonly items: AsyncIterable<LiveItem>;
}

export type LiveItem =
  | {
      readonly kind: 'events';
      readonly events: readonly TerminalEvent[];
      /** Of the memory of the events' data, which may be used again; absent: it never is. */
      readonly loan?: Loan;
      /** Bytes in front of the data of each event, in the same memory, to be written to at will; absent: none. */
      readonly room?: number;
    }
  | { readonly kind: 'resized'; readonly size: TerminalSize };

/**
 * One attachment's way in. Disposing ends the attachment, not the terminal; so does resuming it by
 * another channel. What it has queued then is dropped: `taken` as told to the next one stands.
 */
export interface InputChannel extends AsyncDisposable {
  readonly attachmentId: string;
  /** Whether the attachment asked for was resumed. */
  readonly resumed: boolean;
  /** Input bytes of this attachment, over all its streams, that the line discipline has taken. */
  readonly taken: number;
  /**
   * Queues one frame (1 byte to 64 KiB) behind what was sent before; resolves with `taken` when the
   * line discipline has all of it. Frames of one terminal are never interleaved.
   * @throws INPUT_QUEUE_FULL, TERMINAL_EXITED, GRANT_REVOKED (lease fenced), TOKEN_EXPIRED (lease
   * over); after a failure `taken` says how much of the frame went through.
   */
  send(data: Uint8Array, lease: Lease): Promise<number>;
}

/** Changes of terminals' records, in order; see `Supervisor.changes`. */
export type TerminalChange =
  | {
      readonly kind: 'snapshot';
      readonly terminals: readonly TerminalSnapshot[];
      readonly cursor: string;
    }
  | { readonly kind: 'changed'; readonly terminal: TerminalSnapshot; readonly cursor: string }
  | {
      readonly kind: 'removed';
      readonly tuple: TerminalTuple;
      readonly uid: string;
      readonly cursor: string;
    };

export interface Supervisor extends AsyncDisposable {
  info(): Promise<SupervisorInfo>;

  /** Login shell of the owner, else /bin/sh, and its home, else `/`: what is there and usable. */
  defaults(owner: Name): Promise<OwnerDefaults>;

  /**
   * Makes the resource and starts its first instance. Resolves when the child runs and the record
   * is on disk. On failure nothing of it remains.
   * @throws TERMINAL_EXISTS, REQUEST_ID_REUSED, COMMAND_NOT_FOUND, CWD_INVALID, FIELD_INVALID, QUOTA_TERMINALS
   */
  create(spec: CreateSpec): Promise<TerminalSnapshot>;

  /**
   * Starts a new instance of an exited terminal with the stored command, cwd and environment.
   * @throws TERMINAL_NOT_FOUND, TERMINAL_EXISTS (it still runs), COMMAND_NOT_FOUND, CWD_INVALID, QUOTA_TERMINALS
   */
  start(key: TerminalKey, spec: StartSpec): Promise<TerminalSnapshot>;
  /** @throws TERMINAL_NOT_FOUND */
  launchPlan(key: TerminalKey): Promise<LaunchPlan>;

  /** @throws TERMINAL_NOT_FOUND */
  update(key: TerminalKey, spec: UpdateSpec): Promise<TerminalSnapshot>;
  /** Removes an exited terminal and its history. @throws TERMINAL_NOT_FOUND, TERMINAL_EXISTS (it still runs) */
  remove(key: TerminalKey): Promise<void>;

  /** Undefined when there is none: whether that may be told is the caller's to decide. */
  get(key: TerminalKey): Promise<TerminalSnapshot | undefined>;
  /** All terminals, or those of one owner, ordered by owner, then id, by bytes; or a part of them. */
  list(owner?: Name, part?: ListPart): Promise<readonly TerminalSnapshot[]>;
  /**
   * Lifecycle changes after `cursor`; without a cursor, or with one that is too old or of another
   * supervisor, a snapshot comes first. Output is not a change.
   */
  changes(cursor: string | undefined, signal: AbortSignal): AsyncIterable<TerminalChange>;
  /** Resolves when the instance that runs now has exited and its exit is on disk; at once when none runs. @throws TERMINAL_NOT_FOUND */
  exited(key: TerminalKey, signal: AbortSignal): Promise<TerminalSnapshot>;

  /** @throws TERMINAL_NOT_FOUND */
  openOutput(key: TerminalKey, signal: AbortSignal): Promise<LiveOutput>;
  /** @throws TERMINAL_NOT_FOUND, QUOTA_STREAMS (too many attachments) */
  attach(key: TerminalKey, spec: AttachmentSpec): Promise<InputChannel>;

  /** @throws as `InputChannel.send`, TERMINAL_NOT_FOUND, REQUEST_ID_REUSED */
  write(key: TerminalKey, spec: WriteSpec): Promise<WriteResult>;
  /** The latest wins; the same size again does nothing. @throws TERMINAL_NOT_FOUND, TERMINAL_EXITED, FIELD_INVALID */
  resize(key: TerminalKey, size: TerminalSize, lease: Lease): Promise<void>;
  /** To the foreground process group. @throws TERMINAL_NOT_FOUND, TERMINAL_EXITED, REQUEST_ID_REUSED */
  signal(
    key: TerminalKey,
    name: SignalName,
    lease: Lease,
    request?: RequestMark,
  ): Promise<SignalResult>;
  /** SIGTERM, then SIGHUP, to the tree; waits; never SIGKILL. @throws TERMINAL_NOT_FOUND */
  stop(key: TerminalKey, spec: StopSpec): Promise<EndResult>;
  /** SIGKILL to the tree until it is quiescent. @throws TERMINAL_NOT_FOUND */
  kill(key: TerminalKey, spec: EndSpec): Promise<EndResult>;
  /** @throws TERMINAL_NOT_FOUND */
  foreground(key: TerminalKey): Promise<ForegroundState>;

  /**
   * Drops what is queued under these leases and refuses what arrives under them later. Resolves
   * when the last byte written under any of them has been written.
   */
  fence(leaseIds: readonly string[]): Promise<void>;
}
