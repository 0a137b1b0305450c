/** The exact probe: whether some processes, taken together, wait for input from one terminal. */
import { open, readdir, readFile, stat } from 'node:fs/promises';
import { endianness } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import type { ProcessInfo } from './processTable.js';

/**
 * `yes`: at least one thread is in a system call that returns when the terminal has input, and every
 * other one is passive: it waits for somebody else. `no`: it is otherwise. `unknown`: /proc does not
 * say so of all that it would have to: for want of rights, on other machines, or because something
 * ended or was too large to look at.
 *
 * Passive are waits on a lock, for a signal, for a child, and on other descriptors. A single thread
 * that polls the terminal together with all that does wait for input, so threads and processes that
 * share these waits among them do too: an interpreter with idle workers, a program that reads in a
 * thread, a script whose child asks. Whatever goes on by itself is not passive: a thread that runs,
 * waits for a disk, is stopped, or sleeps until a time.
 */
export type InputWait = 'yes' | 'no' | 'unknown';

/** What one thread does; the others as `InputWait` has them. */
type ThreadWait = 'terminal' | 'passive' | 'active' | 'unknown';

/** The first four may be on the terminal; `passive` is known by the call alone. */
type Call = 'read' | 'poll' | 'select' | 'epoll' | 'passive';

/** System calls by number (asm/unistd.h); the first four take a descriptor, or addresses of several. */
const CALLS: Readonly<Record<string, ReadonlyMap<number, Call>>> = {
  x64: new Map([
    [0, 'read'],
    [17, 'read'], // pread64
    [19, 'read'], // readv
    [23, 'select'],
    [270, 'select'], // pselect6
    [7, 'poll'],
    [271, 'poll'], // ppoll
    [232, 'epoll'], // epoll_wait
    [281, 'epoll'], // epoll_pwait
    [202, 'passive'], // futex
    [449, 'passive'], // futex_waitv
    [34, 'passive'], // pause
    [128, 'passive'], // rt_sigtimedwait
    [130, 'passive'], // rt_sigsuspend
    [61, 'passive'], // wait4
    [247, 'passive'], // waitid
    [45, 'passive'], // recvfrom
    [47, 'passive'], // recvmsg
  ]),
  arm64: new Map([
    [63, 'read'],
    [65, 'read'], // readv
    [67, 'read'], // pread64
    [72, 'select'], // pselect6
    [73, 'poll'], // ppoll
    [22, 'epoll'], // epoll_pwait
    [98, 'passive'], // futex
    [449, 'passive'], // futex_waitv
    [133, 'passive'], // rt_sigsuspend
    [137, 'passive'], // rt_sigtimedwait
    [260, 'passive'], // wait4
    [95, 'passive'], // waitid
    [207, 'passive'], // recvfrom
    [212, 'passive'], // recvmsg
  ]),
};

/** Descriptors in one select or poll, and threads of one process, above which the answer is unknown. */
const MAX_DESCRIPTORS = 1024;
const MAX_THREADS = 256;

/** `struct pollfd`: int fd, short events, short revents (poll(2)). */
const POLLFD_BYTES = 8;
/** Of poll(2) and, with the same value, epoll_ctl(2). */
const POLLIN = 1;

/** A stack below it is that of a 32-bit program, whose system calls have other numbers. */
const LOWEST_STACK = 0x1_0000_0000n;

/** Device number of /dev/tty, which is whatever terminal its opener has. */
const DEV_TTY = 0x0500;

/**
 * `members` scans for the processes asked about. They are looked at twice: when no thread has come,
 * gone or run in between, all of them waited at one moment, whatever the order of looking.
 */
export async function waitForInput(
  members: () => Promise<readonly ProcessInfo[]>,
  ttyDevice: number,
): Promise<InputWait> {
  const calls = CALLS[process.arch];
  if (!calls || endianness() !== 'LE') return 'unknown';
  try {
    const threads = await threadsOf(await members());
    if (threads.some(({ state }) => state !== SLEEPING)) return 'no';
    const waits: ThreadWait[] = [];
    for (const { pid, call } of threads) {
      waits.push(await threadWait({ pid, ttyDevice, calls }, call));
      if (waits.at(-1) === 'active') return 'no';
    }
    if (waits.includes('unknown')) return 'unknown';
    if (!waits.includes('terminal')) return threads.length > 0 ? 'no' : 'unknown';
    const again = await threadsOf(await members());
    return isDeepStrictEqual(threads, again) ? 'yes' : 'unknown';
  } catch {
    return 'unknown';
  }
}

/** States of proc_pid_stat(5): waiting, for an event that a signal may interrupt; ended. */
const SLEEPING = 'S';
const ENDED = ['Z', 'X'];

interface Thread {
  readonly pid: number;
  readonly thread: string;
  readonly state: string;
  /** How often it has given up a processor: the same number, so it has not run since. */
  readonly switches: string;
  /** `running`, or number, six arguments, stack and program counter, or `-1` and the last two. */
  readonly call: string;
}

/** Those that may still do something. */
async function threadsOf(processes: readonly ProcessInfo[]): Promise<Thread[]> {
  const found: Thread[] = [];
  for (const { pid } of processes) {
    const threads = await readdir(`/proc/${pid}/task`);
    if (threads.length > MAX_THREADS) throw new Error('too many threads to look at');
    for (const thread of threads) {
      const status = await readFile(`/proc/${pid}/task/${thread}/status`, 'latin1');
      const state = /^State:\s*(\S)/m.exec(status)?.[1] ?? '';
      if (ENDED.includes(state)) continue;
      const call = await readFile(`/proc/${pid}/task/${thread}/syscall`, 'latin1');
      const switches = status.match(/^(?:non)?voluntary_ctxt_switches:.*$/gm)?.join() ?? '';
      found.push({ pid, thread, state, switches, call: call.trim() });
    }
  }
  return found;
}

interface Subject {
  readonly pid: number;
  readonly ttyDevice: number;
  readonly calls: ReadonlyMap<number, Call>;
}

async function threadWait(subject: Subject, call: string): Promise<ThreadWait> {
  const words = call.split(' ');
  const [number, first, second] = words;
  const stack = words.at(-2);
  if (call === 'running') return 'active';
  if (number === undefined || first === undefined || second === undefined) return 'unknown';
  if (stack === undefined || BigInt(stack) < LOWEST_STACK) return 'unknown';
  switch (subject.calls.get(Number(number))) {
    case 'read':
      return readFrom(subject, int(first));
    case 'poll':
      return polled(subject, BigInt(first), int(second));
    case 'select':
      return selected(subject, int(first), BigInt(second));
    case 'epoll':
      return epolled(subject, int(first));
    case 'passive':
      return 'passive';
    case undefined:
      return 'active';
  }
}

/** A register holds more than the int that the call takes from it. */
function int(register: string): number {
  return Number(BigInt.asIntN(32, BigInt(register)));
}

/** Of what is no terminal, pipes and sockets are fed by others; a file is by a disk. */
async function readFrom(subject: Subject, descriptor: number): Promise<ThreadWait> {
  if (await isTerminal(subject, descriptor)) return 'terminal';
  const stats = await stat(`/proc/${subject.pid}/fd/${descriptor}`);
  return stats.isFIFO() || stats.isSocket() ? 'passive' : 'active';
}

/** select(2): bit n of the set that is read stands for descriptor n. On none it is a sleep. */
async function selected(subject: Subject, count: number, address: bigint): Promise<ThreadWait> {
  if (count > MAX_DESCRIPTORS) return 'unknown';
  if (count <= 0) return 'active';
  if (address === 0n) return 'passive';
  // The kernel reads whole longs.
  const set = await readMemory(subject.pid, address, Math.ceil(count / 64) * 8);
  for (let descriptor = 0; descriptor < count; descriptor += 1) {
    const bit = (set.readUInt8(descriptor >> 3) >> (descriptor & 7)) & 1;
    if (bit === 1 && (await isTerminal(subject, descriptor))) return 'terminal';
  }
  return 'passive';
}

/** On no descriptor it is a sleep. */
async function polled(subject: Subject, address: bigint, count: number): Promise<ThreadWait> {
  if (count > MAX_DESCRIPTORS) return 'unknown';
  if (count <= 0) return 'active';
  const entries = await readMemory(subject.pid, address, count * POLLFD_BYTES);
  for (let offset = 0; offset < entries.length; offset += POLLFD_BYTES) {
    const descriptor = entries.readInt32LE(offset);
    const wantsInput = (entries.readInt16LE(offset + 4) & POLLIN) !== 0;
    if (wantsInput && descriptor >= 0 && (await isTerminal(subject, descriptor))) return 'terminal';
  }
  return 'passive';
}

/**
 * What an epoll descriptor watches stands in its fdinfo, in hexadecimal (proc(5)); when it watches
 * nothing, waiting on it is a sleep.
 */
async function epolled(subject: Subject, epoll: number): Promise<ThreadWait> {
  const info = await readFile(`/proc/${subject.pid}/fdinfo/${epoll}`, 'latin1');
  let wait: ThreadWait = 'active';
  for (const [, descriptor, events] of info.matchAll(/^tfd:\s*(\d+) events:\s*([0-9a-f]+)/gm)) {
    wait = 'passive';
    const wantsInput = (Number.parseInt(events ?? '0', 16) & POLLIN) !== 0;
    if (wantsInput && (await isTerminal(subject, Number(descriptor)))) return 'terminal';
  }
  return wait;
}

/** All members of a foreground group have the terminal as theirs, so /dev/tty is it too. */
async function isTerminal({ pid, ttyDevice }: Subject, descriptor: number): Promise<boolean> {
  const { rdev } = await stat(`/proc/${pid}/fd/${descriptor}`);
  return rdev === ttyDevice || rdev === DEV_TTY;
}

/** @throws when it cannot be read in full */
async function readMemory(pid: number, address: bigint, length: number): Promise<Buffer> {
  const position = Number(address);
  // For a position that is none Node.js reads wherever the file stands.
  if (!Number.isSafeInteger(position)) throw new Error('the address lies outside of user memory');
  const memory = Buffer.alloc(length);
  await using handle = await open(`/proc/${pid}/mem`, 'r');
  const { bytesRead } = await handle.read(memory, 0, length, position);
  if (bytesRead < length)
    throw new Error(`${bytesRead} of ${length} bytes of memory could be read`);
  return memory;
}
