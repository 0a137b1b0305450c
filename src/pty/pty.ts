/** One pseudo-terminal and the process that runs on it: lossless output, ordered input, its end. */
import { closeSync, constants, fchownSync, fstatSync, openSync, readlinkSync } from 'node:fs';
import { constants as os } from 'node:os';
import { errorCode, GranttyError } from '../core/errors.js';
import type { TerminalSize } from '../core/event.js';
import { type Birth, forksSoFar } from './forkOrder.js';
import { InputQueue } from './inputQueue.js';
import { childLaunch } from './launch.js';
import { type ForkedPty, forkPty } from './nativePty.js';
import { readProcess } from './processTable.js';
import { PtyMaster } from './ptyMaster.js';
import type { RunAs } from './runAs.js';

export interface PtySpec {
  /** argv; the first element absolute, as `resolveCommand` gives it. */
  readonly command: readonly string[];
  /** Complete: the child has nothing else. */
  readonly env: Readonly<Record<string, string>>;
  /** Absolute and without symbolic links, as `resolveCwd` gives it. */
  readonly cwd: string;
  readonly size: TerminalSize;
  /** Absent: as the user of this process. */
  readonly runAs?: RunAs | undefined;
  /** Directory of the control group that the child is in from the first moment. */
  readonly cgroup?: string | undefined;
}

export interface PtyExit {
  /** 0–255; 128+n when signal n ended the process. */
  readonly exitCode: number;
  /** Name of the signal that ended it, e.g. `SIGTERM`. */
  readonly signal?: string;
  /** All output was read to its end. False when another process still had the terminal open. */
  readonly drained: boolean;
}

export interface Pty extends AsyncDisposable {
  readonly pid: number;
  readonly birth: Birth;
  /** Of the process, clock ticks since boot; 0 when it ended before it could be read. */
  readonly startTime: number;
  readonly ttyDevice: number;
  /** Resolves after the last `onData`, then `close` is due. */
  readonly exit: Promise<PtyExit>;
  /**
   * Leaves output in the kernel, and so holds its writer back. Once the process has ended, what the
   * kernel had of it (at most 320 KiB) comes all the same, so that its end can be told.
   */
  pauseOutput(): void;
  resumeOutput(): void;
  /**
   * Queues one input frame; resolves when the line discipline has taken it whole. In canonical mode
   * Linux takes, and drops, what exceeds 4,095 bytes of one line. `data` must not change until then.
   * @throws INPUT_QUEUE_FULL, TERMINAL_EXITED, or what `mayWrite` answers just before an attempt
   */
  send(
    data: Uint8Array,
    mayWrite: () => GranttyError | undefined,
    onTaken?: (bytes: number) => void,
  ): Promise<void>;
  /** Asks `mayWrite` of all queued frames again and rejects the refused. */
  dropRefused(): void;
  /** Input bytes accepted and not yet taken. */
  readonly queuedBytes: number;
  /** @throws TERMINAL_EXITED */
  resize(size: TerminalSize): void;
  /** Closes the master: the kernel hangs up on whoever still has the terminal. Idempotent. */
  close(): void;
}

/**
 * Starts `spec.command` on a new terminal. `onData` gets each chunk in order; a chunk is only valid
 * during the call. The caller closes the answer, after `exit` or to hang up earlier.
 *
 * Masters are not close-on-exec (see nativePty.ts): whoever opens a PTY must not use
 * node:child_process in the same process from then on.
 * @throws CWD_INVALID when the directory is not there any more, QUOTA_TERMINALS when the host has no
 * terminal or process left
 */
export function openPty(spec: PtySpec, onData: (chunk: Uint8Array) => void): Pty {
  return new OpenPty(spec, onData);
}

/** open(2): a descriptor that names a file and needs no right to read it. Not in fs.constants. */
const O_PATH = 0o10000000;

/** chown(2): the group stays `tty`, whose mode bits the kernel set. */
const KEEP_GROUP = -1;

class OpenPty implements Pty {
  readonly pid: number;
  readonly birth: Birth;
  readonly startTime: number;
  readonly ttyDevice: number;
  readonly exit: Promise<PtyExit>;
  readonly #master: PtyMaster;
  readonly #input: InputQueue;
  #exited = false;

  constructor(spec: PtySpec, onData: (chunk: Uint8Array) => void) {
    let onExit: (exitCode: number, signal: number) => void = () => {};
    const ended = new Promise<ChildEnd>((resolve) => {
      onExit = (exitCode, signal) => resolve({ exitCode, signal });
    });
    const forks = forksSoFar();
    const { master, pid, slavePath } = fork(spec, onExit);
    this.pid = pid;
    this.birth = { pid, forks };
    let slave: number | undefined;
    try {
      const child = readProcess(pid);
      this.startTime = child?.parent === process.pid ? child.startTime : 0;
      // Without O_NOCTTY it would become the controlling terminal of a session leader that has none, and
      // the hang-up of that one terminal would end this process.
      slave = openSync(slavePath, constants.O_RDWR | constants.O_NOCTTY);
      if (spec.runAs) fchownSync(slave, spec.runAs.uid, KEEP_GROUP);
      this.ttyDevice = fstatSync(slave).rdev;
      this.#master = new PtyMaster(master, slave, onData);
    } catch (cause) {
      if (slave !== undefined) closeSync(slave);
      closeSync(master);
      if (readProcess(pid)?.parent === process.pid) process.kill(pid, 'SIGKILL');
      throw hostIsFull(cause);
    }
    this.#input = new InputQueue((data, offset) => this.#master.write(data, offset));
    this.exit = ended.then((end) => this.#finish(end));
  }

  pauseOutput(): void {
    this.#master.pause();
  }

  resumeOutput(): void {
    this.#master.resume();
  }

  send(
    data: Uint8Array,
    mayWrite: () => GranttyError | undefined,
    onTaken?: (bytes: number) => void,
  ): Promise<void> {
    return this.#input.send(data, mayWrite, onTaken);
  }

  dropRefused(): void {
    this.#input.dropRefused();
  }

  get queuedBytes(): number {
    return this.#input.queuedBytes;
  }

  resize(size: TerminalSize): void {
    if (this.#exited) throw terminalExited();
    this.#master.resize(size);
  }

  close(): void {
    this.#exited = true;
    this.#input.end(terminalExited());
    this.#master.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  async #finish({ exitCode, signal }: ChildEnd): Promise<PtyExit> {
    this.#exited = true;
    this.#input.end(terminalExited());
    const drained = await this.#master.drain();
    if (signal === 0) return { exitCode, drained };
    return { exitCode: 128 + signal, signal: signalName(signal), drained };
  }
}

interface ChildEnd {
  readonly exitCode: number;
  /** 0 when none ended it. */
  readonly signal: number;
}

/**
 * The directory is opened first and the child goes to what was opened: a link that is put in its
 * way after it was checked leads nowhere, although the change happens with this process's rights.
 */
function fork(spec: PtySpec, onExit: (exitCode: number, signal: number) => void): ForkedPty {
  const { argv, env } = childLaunch({ argv: spec.command, env: spec.env }, spec.runAs, spec.cgroup);
  const directory = openDirectory(spec.cwd);
  try {
    return forkPty({
      argv,
      env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
      cwd: `/proc/self/fd/${directory}`,
      size: spec.size,
      onExit,
    });
  } catch (cause) {
    throw hostIsFull(cause);
  } finally {
    closeSync(directory);
  }
}

function openDirectory(path: string): number {
  let directory: number;
  try {
    directory = openSync(path, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  } catch (cause) {
    if (['EMFILE', 'ENFILE'].includes(errorCode(cause) ?? '')) throw hostIsFull(cause);
    throw new GranttyError('CWD_INVALID', 'the working directory cannot be opened', { cause });
  }
  if (readlinkSync(`/proc/self/fd/${directory}`) === path) return directory;
  closeSync(directory);
  throw new GranttyError('CWD_INVALID', 'the working directory is not where it was');
}

const signalNames = new Map(
  Object.entries(os.signals)
    .reverse()
    .map(([name, number]) => [number, name] as const),
);

function signalName(number: number): string {
  return signalNames.get(number) ?? `SIG${number}`;
}

function hostIsFull(cause: unknown): GranttyError {
  return new GranttyError('QUOTA_TERMINALS', 'the host has no terminal, process or file left', {
    cause,
    retryAfterMs: 1000,
  });
}

function terminalExited(): GranttyError {
  return new GranttyError('TERMINAL_EXITED', 'the process of this terminal has exited');
}
