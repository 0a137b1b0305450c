// What processes hold of the machine's memory, as the kernel counts it.
import { readFile } from 'node:fs/promises';

/**
 * Bytes of a process: its proportional set size, in which a page that several processes share counts
 * for each of them by its part (proc(5), smaps_rollup).
 */
export async function proportionalBytes(pid) {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'latin1');
  return Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)[1]) * 1024;
}
