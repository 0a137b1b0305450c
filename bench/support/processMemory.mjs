// What processes hold of the machine's memory, as the kernel counts it.
import { readFile } from 'node:fs/promises';

/**
 * Bytes that are a process's own: the anonymous part of its proportional set size (proc(5),
 * smaps_rollup). What is mapped from files, the program itself above all, is left out: its part
 * changes with the number of other processes that run the same program.
 */
export async function ownBytes(pid) {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'latin1');
  return Number(/^Pss_Anon:\s+(\d+) kB$/m.exec(rollup)[1]) * 1024;
}
