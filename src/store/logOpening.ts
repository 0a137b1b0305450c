/** What a writer finds when it opens a log: its parts, its index, and events.jsonl made sound. */
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { openOrCreate, openRegular, requireDirectory } from './files.js';
import { durablePlace, LogIndex } from './logIndex.js';
import { sealedParts } from './logParts.js';
import { type LogState, setAside, soundPrefix, stateBefore, verifiedPlace } from './logRepair.js';
import { EVENTS_FILE, INDEX_FILE, sealedEventsFile } from './paths.js';
import { createWritten, type WrittenFile } from './writtenFile.js';

export interface SealedPart {
  readonly firstSeq: number;
  readonly bytes: number;
  /** When its last event was written, milliseconds since the Unix epoch. */
  readonly writtenAt: number;
}

/** A tail that was no sound event, moved out of the log. */
export interface SetAside {
  readonly path: string;
  readonly bytes: number;
}

export interface OpenedLog {
  /** events.jsonl. */
  readonly handle: WrittenFile;
  readonly index: LogIndex;
  /** Oldest first. */
  readonly sealed: SealedPart[];
  /** Bytes of events.jsonl, and the seq of its first event. */
  readonly end: number;
  readonly firstSeq: number | undefined;
  readonly state: LogState;
  readonly repaired: SetAside | undefined;
}

/**
 * Makes events.jsonl where there is none, and repairs it. Who calls owns both descriptors. The name
 * of a new one is durable with the next durable write of the record, which syncs the directory.
 */
export async function openForWriting(dir: string): Promise<OpenedLog> {
  await requireDirectory(dir);
  const { sealed, before } = await readSealed(dir);
  const handle = await openOrCreate(join(dir, EVENTS_FILE), { sync: false });
  let index: LogIndex | undefined;
  try {
    const indexPath = join(dir, INDEX_FILE);
    const known = await verifiedPlace(handle, await durablePlace(indexPath));
    const lines = await LogIndex.open(indexPath, known?.end);
    index = lines;
    const found = await soundPrefix(handle, known, before, (seq, at) => lines.note(seq, at));
    const { end, firstSeq, ...state } = found;
    const torn = (await handle.stat()).size - end;
    const repaired =
      torn > 0
        ? { path: await setAside(handle, join(dir, EVENTS_FILE), end), bytes: torn }
        : undefined;
    return { handle, index, sealed, end, firstSeq, state, repaired };
  } catch (error) {
    await index?.close();
    await handle.close();
    throw error;
  }
}

/** Makes events.jsonl in a directory that was just made. The same holds as of `openForWriting`. */
export async function beginWriting(dir: string): Promise<OpenedLog> {
  const handle = createWritten(join(dir, EVENTS_FILE));
  const index = LogIndex.empty(join(dir, INDEX_FILE));
  const state = { nextSeq: 1, lastTimeMicros: 0, lastExit: undefined };
  return { handle, index, sealed: [], end: 0, firstSeq: undefined, state, repaired: undefined };
}

/** The sealed parts, and what the newest of them leads up to. */
async function readSealed(dir: string) {
  const sealed: SealedPart[] = [];
  for (const firstSeq of await sealedParts(dir)) {
    const { size, mtimeMs } = await lstat(join(dir, sealedEventsFile(firstSeq)));
    sealed.push({ firstSeq, bytes: size, writtenAt: mtimeMs });
  }
  const newest = sealed.at(-1);
  if (!newest) return { sealed, before: undefined };
  const path = join(dir, sealedEventsFile(newest.firstSeq));
  await using handle = await openRegular(path, 'read');
  const before = await stateBefore(handle, newest.bytes);
  if (!before) throw new Error(`${path} was sealed but does not end with a sound event`);
  return { sealed, before };
}
