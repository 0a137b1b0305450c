/** What /proc says of processes: one of them now, or all of them by one shared scan (proc(5)). */
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';
import { errorCode } from '../core/errors.js';
import { type Birth, begunSince, earlier } from './forkOrder.js';

export interface ProcessInfo {
  readonly pid: number;
  /** The kernel's name of it: up to 15 bytes of the executable's name. */
  readonly comm: string;
  /** One letter, e.g. R, S, T; Z and X have ended. */
  readonly state: string;
  readonly parent: number;
  readonly processGroup: number;
  readonly session: number;
  /** Device number of the controlling terminal; 0 when it has none. */
  readonly ttyDevice: number;
  /** Foreground process group of the controlling terminal; -1 when it has none. */
  readonly foregroundGroup: number;
  readonly threads: number;
  /** Clock ticks since boot. With the pid it tells processes apart that the pid alone does not. */
  readonly startTime: number;
}

/**
 * Processes read in one turn of the event loop during a scan: about half a millisecond. Their `stat`
 * never blocks, and reading it in an I/O thread costs ten times as much. What can block, because it
 * needs the memory lock of a process that may be stuck, is read in an I/O thread.
 */
const SCAN_BATCH = 32;

/** The state of processes at about one time. Each that lived throughout the scan and `covers` is in it. */
export class ProcessTable {
  readonly #instances = new Map<number, Promise<string | undefined>>();

  constructor(
    readonly processes: readonly ProcessInfo[],
    /** Whether a process of that number would be in it. */
    readonly covers: (pid: number) => boolean,
  ) {}

  /** CTX_INSTANCE of its environment as it was executed; undefined also when that may not be read. */
  instanceOf(pid: number): Promise<string | undefined> {
    let instance = this.#instances.get(pid);
    if (!instance) {
      instance = readInstance(pid);
      this.#instances.set(pid, instance);
    }
    return instance;
  }
}

/** More than a line of `stat` can have. Only used between an open and its close. */
const statBuffer = Buffer.allocUnsafeSlow(4096);

/**
 * The process as it is now; undefined when there is none, or only what is left of an ended one.
 * @throws when this process has no descriptor left to look with
 */
export function readProcess(pid: number | string): ProcessInfo | undefined {
  try {
    const stat = openSync(`/proc/${pid}/stat`, 'r');
    try {
      return live(parseStat(statBuffer.toString('latin1', 0, readSync(stat, statBuffer))));
    } finally {
      closeSync(stat);
    }
  } catch (error) {
    if (['EMFILE', 'ENFILE'].includes(errorCode(error) ?? '')) throw error;
    return undefined;
  }
}

/** Whether the process has the signal ignored; false when that cannot be read. */
export function ignoresSignal(pid: number, signal: number): boolean {
  try {
    const mask = /^SigIgn:\s*([0-9a-f]+)$/m.exec(
      readFileSync(`/proc/${pid}/status`, 'latin1'),
    )?.[1];
    return ((BigInt(`0x${mask ?? '0'}`) >> BigInt(signal - 1)) & 1n) === 1n;
  } catch {
    return false;
  }
}

let running: Promise<ProcessTable> | undefined;
let next: { readonly table: Promise<ProcessTable>; since: Birth | undefined } | undefined;

/**
 * A scan that begins after this call, of all processes or of those that began with `since` or later. One
 * runs at a time; those who ask meanwhile share the one that follows it, because the running one may
 * have passed by what they are looking for.
 */
export function scanProcesses(since?: Birth): Promise<ProcessTable> {
  if (next) {
    next.since = earlier(next.since, since);
    return next.table;
  }
  const table = after(running).then(() => {
    const scan = scanNow(next?.since);
    running = scan;
    next = undefined;
    return scan;
  });
  next = { table, since };
  return table;
}

async function after(scan: Promise<unknown> | undefined): Promise<void> {
  await scan?.catch(() => {});
}

async function scanNow(since: Birth | undefined): Promise<ProcessTable> {
  const covers = (since && begunSince(since)) ?? (() => true);
  const pids = (await readdir('/proc')).filter(
    (name) => /^\d+$/.test(name) && covers(Number(name)),
  );
  const processes: ProcessInfo[] = [];
  for (let begin = 0; begin < pids.length; begin += SCAN_BATCH) {
    if (begin > 0) await setImmediate();
    for (const pid of pids.slice(begin, begin + SCAN_BATCH)) {
      const process = readProcess(pid);
      if (process) processes.push(process);
    }
  }
  return new ProcessTable(processes, covers);
}

/** A process whose first thread ended while others run counts as live. */
function live(process: ProcessInfo | undefined): ProcessInfo | undefined {
  if (!process) return undefined;
  const ended = process.state === 'Z' || process.state === 'X';
  return ended && process.threads <= 1 ? undefined : process;
}

/** The second field is the only one with free text: it ends at the last parenthesis. */
function parseStat(text: string): ProcessInfo | undefined {
  const open = text.indexOf('(');
  const close = text.lastIndexOf(')');
  if (open < 0 || close < open) return undefined;
  const fields = text.slice(close + 2).split(' ');
  const field = (number: number) => Number(fields[number - 3]);
  return {
    pid: Number.parseInt(text, 10),
    comm: text.slice(open + 1, close),
    state: fields[0] ?? '',
    parent: field(4),
    processGroup: field(5),
    session: field(6),
    ttyDevice: field(7),
    foregroundGroup: field(8),
    threads: field(20),
    startTime: field(22),
  };
}

const INSTANCE_VARIABLE = 'CTX_INSTANCE=';

/**
 * Read by pieces into one buffer of its own: `readFile` asks for 64 KiB anew for each file whose size
 * it is not told, as those in /proc, and that is what a busy supervisor would collect garbage for.
 */
const PIECE_BYTES = 4096;

async function readInstance(pid: number): Promise<string | undefined> {
  try {
    await using file = await open(`/proc/${pid}/environ`, 'r');
    const piece = Buffer.allocUnsafe(PIECE_BYTES);
    let rest = '';
    for (;;) {
      const { bytesRead } = await file.read(piece, 0, PIECE_BYTES);
      const entries = `${rest}${piece.toString('latin1', 0, bytesRead)}`.split('\0');
      // Without an end as yet, unless this is the end.
      rest = bytesRead > 0 ? (entries.pop() ?? '') : '';
      const found = entries.find((entry) => entry.startsWith(INSTANCE_VARIABLE));
      if (found !== undefined) return found.slice(INSTANCE_VARIABLE.length);
      if (bytesRead === 0) return undefined;
    }
  } catch {
    return undefined;
  }
}
