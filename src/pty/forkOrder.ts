/** Which processes can have begun after another, by the order in which the kernel hands out pids. */
import { readFileSync, statfsSync } from 'node:fs';

/** A process that was forked here, and the kernel's count of forks before it. */
export interface Birth {
  readonly pid: number;
  /** Undefined where the kernel does not tell. */
  readonly forks: number | undefined;
}

/** statfs(2): what else is mounted over a file of /proc, as container tools do, may tell of other times. */
const PROC_SUPER_MAGIC = 0x9fa0;

/** The lowest pid that is handed out again once they have begun anew (RESERVED_PIDS, pid.c), and less. */
const MIN_PID_MAX = 301;

/** Processes and threads begun since boot, in all namespaces (proc(5), /proc/stat). */
export function forksSoFar(): number | undefined {
  return numberIn('/proc/stat', /^processes (\d+)$/m);
}

/** The one of the two that came first; undefined where one is unknown. */
export function earlier(a: Birth | undefined, b: Birth | undefined): Birth | undefined {
  if (a?.forks === undefined || b?.forks === undefined) return undefined;
  return a.forks <= b.forks ? a : b;
}

/**
 * Whether a pid can be of a process that began with `birth` or after it, up to now. Pids ascend, and
 * begin anew above the highest; numbers in use are passed over (idr_alloc_cyclic). While fewer than a
 * quarter of all have been handed out since, none of the others is of a process that began since, as
 * long as no more than three quarters are in use at one time. Undefined where it cannot be told.
 */
export function begunSince({ pid, forks }: Birth): ((pid: number) => boolean) | undefined {
  const now = forksSoFar();
  const last = numberIn('/proc/loadavg', / (\d+)\n$/);
  const pids = numberIn('/proc/sys/kernel/pid_max', /^(\d+)\n$/);
  if (forks === undefined || !now || !last || !pids || pids < MIN_PID_MAX) return undefined;
  if (now - forks > (pids - MIN_PID_MAX) / 4) return undefined;
  return last >= pid ? (one) => one >= pid && one <= last : (one) => one >= pid || one <= last;
}

const isKernels = new Map<string, boolean>();

function numberIn(path: string, pattern: RegExp): number | undefined {
  try {
    let isSound = isKernels.get(path);
    if (isSound === undefined) {
      isSound = statfsSync(path).type === PROC_SUPER_MAGIC;
      isKernels.set(path, isSound);
    }
    const found = isSound ? pattern.exec(readFileSync(path, 'utf8'))?.[1] : undefined;
    return found === undefined ? undefined : Number(found);
  } catch {
    return undefined;
  }
}
