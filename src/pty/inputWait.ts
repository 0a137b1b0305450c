/** The exact probe: whether every thread of some processes waits for input from one terminal. */
import { open, readdir, readFile, stat } from 'node:fs/promises';
import { endianness } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import type { ProcessInfo } from './processTable.js';

/**
 * `yes`: each thread is in a system call that returns when the terminal has input. `no`: one is
 * not. `unknown`: /proc does not say so of all that it would have to: for want of rights, on other
 * machines, or because something ended or was too large to look at.
 */
export type InputWait = 'yes' | 'no' | 'unknown';

type Call = 'read' | 'poll' | 'select' | 'epoll';

/** System calls by number (asm/unistd.h); each takes a descriptor, or the addresses of several. */
const CALLS: Readonly<Record<string, ReadonlyMap<number, Call>>> = {
  x64: new Map([
    [0, 'read'],
    [17, 'read'], // pread64
    [23, 'select'],
    [270, 'select'], // pselect6
    [7, 'poll'],
    [271, 'poll'], // ppoll
    [232, 'epoll'], // epoll_wait
    [281, 'epoll'], // epoll_pwait
  ]),
  arm64: new Map([
    [63, 'read'],
    [67, 'read'], // pread64
    [72, 'select'], // pselect6
    [73, 'poll'], // ppoll
    [22, 'epoll'], // epoll_pwait
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
    if (threads.length === 0) return 'unknown';
    for (const { pid, call } of threads) {
      const waits = await callWaits({ pid, ttyDevice, calls }, call);
      if (waits !== 'yes') return waits;
    }
    const again = await threadsOf(await members());
    return isDeepStrictEqual(threads, again) ? 'yes' : 'unknown';
  } catch {
    return 'unknown';
  }
}

interface Thread {
  readonly pid: number;
  readonly thread: string;
  /** How often it has given up a processor: the same number, so it has not run since. */
  readonly switches: string;
  /** `running`, or number, six arguments, stack and program counter, or `-1` and the last two. */
  readonly call: string;
}

async function threadsOf(processes: readonly ProcessInfo[]): Promise<Thread[]> {
  const found: Thread[] = [];
  for (const { pid } of processes) {
    const threads = await readdir(`/proc/${pid}/task`);
    if (threads.length > MAX_THREADS) throw new Error('too many threads to look at');
    for (const thread of threads) {
      const status = await readFile(`/proc/${pid}/task/${thread}/status`, 'latin1');
      const call = await readFile(`/proc/${pid}/task/${thread}/syscall`, 'latin1');
      const switches = status.match(/^(?:non)?voluntary_ctxt_switches:.*$/gm)?.join() ?? '';
      found.push({ pid, thread, switches, call: call.trim() });
    }
  }
  return found;
}

interface Subject {
  readonly pid: number;
  readonly ttyDevice: number;
  readonly calls: ReadonlyMap<number, Call>;
}

async function callWaits(subject: Subject, call: string): Promise<InputWait> {
  const words = call.split(' ');
  const [number, first, second] = words;
  const stack = words.at(-2);
  if (call === 'running') return 'no';
  if (number === undefined || first === undefined || second === undefined) return 'unknown';
  if (stack === undefined || BigInt(stack) < LOWEST_STACK) return 'unknown';
  switch (subject.calls.get(Number(number))) {
    case 'read':
      return answer(await isTerminal(subject, int(first)));
    case 'poll':
      return polled(subject, BigInt(first), int(second));
    case 'select':
      return selected(subject, int(first), BigInt(second));
    case 'epoll':
      return epolled(subject, int(first));
    case undefined:
      return 'no';
  }
}

/** A register holds more than the int that the call takes from it. */
function int(register: string): number {
  return Number(BigInt.asIntN(32, BigInt(register)));
}

/** select(2): bit n of the set that is read stands for descriptor n. */
async function selected(subject: Subject, count: number, address: bigint): Promise<InputWait> {
  if (count > MAX_DESCRIPTORS) return 'unknown';
  if (address === 0n) return 'no';
  // The kernel reads whole longs.
  const set = await readMemory(subject.pid, address, Math.ceil(count / 64) * 8);
  for (let descriptor = 0; descriptor < count; descriptor += 1) {
    const bit = (set.readUInt8(descriptor >> 3) >> (descriptor & 7)) & 1;
    if (bit === 1 && (await isTerminal(subject, descriptor))) return 'yes';
  }
  return 'no';
}

async function polled(subject: Subject, address: bigint, count: number): Promise<InputWait> {
  if (count > MAX_DESCRIPTORS) return 'unknown';
  const entries = await readMemory(subject.pid, address, count * POLLFD_BYTES);
  for (let offset = 0; offset < entries.length; offset += POLLFD_BYTES) {
    const descriptor = entries.readInt32LE(offset);
    const wantsInput = (entries.readInt16LE(offset + 4) & POLLIN) !== 0;
    if (wantsInput && descriptor >= 0 && (await isTerminal(subject, descriptor))) return 'yes';
  }
  return 'no';
}

/** What an epoll descriptor watches stands in its fdinfo, in hexadecimal (proc(5)). */
async function epolled(subject: Subject, epoll: number): Promise<InputWait> {
  const info = await readFile(`/proc/${subject.pid}/fdinfo/${epoll}`, 'latin1');
  for (const [, descriptor, events] of info.matchAll(/^tfd:\s*(\d+) events:\s*([0-9a-f]+)/gm)) {
    const wantsInput = (Number.parseInt(events ?? '0', 16) & POLLIN) !== 0;
    if (wantsInput && (await isTerminal(subject, Number(descriptor)))) return 'yes';
  }
  return 'no';
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

function answer(waits: boolean): InputWait {
  return waits ? 'yes' : 'no';
}
