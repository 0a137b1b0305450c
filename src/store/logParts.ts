/** The files of one log: sealed parts, complete and never written again, and events.jsonl after them. */
import { lstat, readdir, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../core/errors.js';
import {
  EVENTS_FILE,
  INDEX_FILE,
  sealedEventsFile,
  sealedFirstSeq,
  sealedIndexFile,
} from './paths.js';

/** First seqs of the sealed parts, ascending. */
export async function sealedParts(dir: string): Promise<number[]> {
  const names = await readdir(dir);
  return names
    .map(sealedFirstSeq)
    .filter((seq) => seq !== undefined)
    .sort((a, b) => a - b);
}

/**
 * Gives events.jsonl, whose first event is `firstSeq`, and its index the names of a sealed part.
 * Between this and the making of the next events.jsonl there is none: readers look among the
 * sealed parts then.
 */
export async function sealPart(dir: string, firstSeq: number): Promise<void> {
  await renameIfThere(join(dir, INDEX_FILE), join(dir, sealedIndexFile(firstSeq)));
  await rename(join(dir, EVENTS_FILE), join(dir, sealedEventsFile(firstSeq)));
}

/** Undoes `sealPart` as long as there is no new events.jsonl. */
export async function unsealPart(dir: string, firstSeq: number): Promise<void> {
  await rename(join(dir, sealedEventsFile(firstSeq)), join(dir, EVENTS_FILE));
  await renameIfThere(join(dir, sealedIndexFile(firstSeq)), join(dir, INDEX_FILE));
}

export async function removePart(dir: string, firstSeq: number): Promise<void> {
  await unlink(join(dir, sealedEventsFile(firstSeq)));
  await unlink(join(dir, sealedIndexFile(firstSeq))).catch(ignoreMissing);
}

/** Bytes of all parts of a log. */
export async function logBytes(dir: string): Promise<number> {
  const parts = (await readdir(dir)).filter((name) => name === EVENTS_FILE || sealedFirstSeq(name));
  const sizes = await Promise.all(parts.map(async (name) => (await lstat(join(dir, name))).size));
  return sizes.reduce((sum, bytes) => sum + bytes, 0);
}

async function renameIfThere(from: string, to: string): Promise<void> {
  await rename(from, to).catch(ignoreMissing);
}

function ignoreMissing(error: unknown): void {
  if (errorCode(error) !== 'ENOENT') throw error;
}
