/** The only place that touches node-pty: its unpublished native export, its shape checked at load. */
import { closeSync, openSync, readdirSync, statSync } from 'node:fs';
import * as nodePty from 'node-pty';
import type { TerminalSize } from '../core/event.js';

/** What forkpty(3) gives. The caller owns `master` and closes it. */
export interface ForkedPty {
  /**
   * Non-blocking, and NOT close-on-exec. Children forked here give up what they inherit, but those
   * of node:child_process do not: a process that has forked a PTY must start nothing by other means,
   * or that child can read and type into every terminal.
   */
  readonly master: number;
  /** Leader of a new session and process group whose controlling terminal the slave is. */
  readonly pid: number;
  /** Path of the slave, /dev/pts/N. */
  readonly slavePath: string;
}

export interface ForkSpec {
  /** The first element is a path that execvp(3) gets. */
  readonly argv: readonly string[];
  /** The complete environment, `NAME=value`. */
  readonly env: readonly string[];
  readonly cwd: string;
  readonly size: TerminalSize;
  /** Called on the main thread when the child has been waited for; `signal` is 0 when none ended it. */
  readonly onExit: (exitCode: number, signal: number) => void;
}

/** Of node-pty 1.2.0-beta.15, src/unix/pty.cc; not public there, so another release may change it. */
interface Native {
  fork(
    file: string,
    args: string[],
    env: string[],
    cwd: string,
    cols: number,
    rows: number,
    uid: number,
    gid: number,
    utf8: boolean,
    helperPath: string,
    onExit: (exitCode: number, signal: number) => void,
  ): { fd: number; pid: number; pty: string };
  resize(fd: number, cols: number, rows: number, xPixel: number, yPixel: number): void;
}

const native = checkedNative();

/** Forked here, and not waited for yet as far as is known: nobody else has these numbers. */
const leaders = new Set<number>();

export function isLeader(pid: number): boolean {
  return leaders.has(pid);
}

/** @throws Error when the host has no PTY, process or memory left */
export function forkPty({ argv, env, cwd, size, onExit }: ForkSpec): ForkedPty {
  const [file, ...args] = argv;
  if (file === undefined) throw new Error('an argv needs one element at least');
  const noUid = -1;
  const ended = (exitCode: number, signal: number) => {
    leaders.delete(pid);
    onExit(exitCode, signal);
  };
  const { fd, pid, pty } = withoutGaps(() =>
    native.fork(file, args, [...env], cwd, size.cols, size.rows, noUid, noUid, true, '', ended),
  );
  leaders.add(pid);
  return { master: fd, pid, slavePath: pty };
}

/**
 * Runs `action` with no descriptor number free below the highest in use: the child stops marking
 * descriptors close-on-exec at the first free one (see launch.ts).
 */
function withoutGaps<T>(action: () => T): T {
  const fillers: number[] = [];
  const isFull = descriptorsAreCounted() ? isCountedFull : upTo(highestListed());
  try {
    let filler: number;
    do {
      filler = openSync('/dev/null', 'r');
      fillers.push(filler);
    } while (!isFull(filler));
    return action();
  } finally {
    for (const filler of fillers) closeSync(filler);
  }
}

/** The number of open descriptors is the size of their directory from Linux 6.2 on, and was 0 before. */
function descriptorsAreCounted(): boolean {
  return statSync('/proc/self/fd').size > 0;
}

/** `newest` was the lowest free number: with as many open as there are numbers up to it none is free. */
function isCountedFull(newest: number): boolean {
  return newest + 1 >= statSync('/proc/self/fd').size;
}

function highestListed(): number {
  return readdirSync('/proc/self/fd').reduce((most, fd) => Math.max(most, Number(fd)), 0);
}

function upTo(highest: number): (newest: number) => boolean {
  return (newest) => newest >= highest;
}

/** The kernel raises SIGWINCH in the foreground when the size changes, and only then. */
export function resizePty(master: number, { cols, rows }: TerminalSize): void {
  native.resize(master, cols, rows, 0, 0);
}

function checkedNative(): Native {
  const found: unknown = 'native' in nodePty ? nodePty.native : undefined;
  if (!isNative(found)) {
    throw new Error('node-pty does not export what is needed; only 1.2.0-beta.15 is known to work');
  }
  return found;
}

function isNative(value: unknown): value is Native {
  return (
    typeof value === 'object' &&
    value !== null &&
    'fork' in value &&
    typeof value.fork === 'function' &&
    'resize' in value &&
    typeof value.resize === 'function'
  );
}
