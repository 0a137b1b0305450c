/** The files of a trail: one a day, and what lies beside them. */
import { readdir } from 'node:fs/promises';
import { errorCode } from '../core/errors.js';

/** The latest checkpoint, the whole line. */
export const HEAD_FILE = 'HEAD';
export const RESERVE_FILE = 'reserve';

const DAY_FILE = /^\d{4}-\d{2}-\d{2}\.jsonl$/;

/** The file of a day, in UTC. */
export function dayFile(timeMs: number): string {
  return `${new Date(timeMs).toISOString().slice(0, 10)}.jsonl`;
}

/** Where what cannot be part of the chain is set aside. */
export function tornFile(file: string, timeMs: number): string {
  return `${file.replace(/\.jsonl$/, '')}.torn-${timeMs}`;
}

/** The days of a trail, the earliest first. */
export async function listDayFiles(dir: string): Promise<string[]> {
  try {
    return (await readdir(dir)).filter((name) => DAY_FILE.test(name)).sort();
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  }
}
