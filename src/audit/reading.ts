/** The lines of a trail from its first to its last, and what they say; one line in memory at a time. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { errorCode } from '../core/errors.js';
import { openRegular } from '../store/files.js';
import { readLink } from './chain.js';
import { type Line, readerOf, readLines } from './lines.js';
import { listDayFiles, RESERVE_FILE } from './trailFiles.js';
import type { WrittenRecords } from './writtenRecords.js';

export interface TrailLine {
  /** Without its directory. */
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** With the newline where there is one. Valid until the next line is asked for. */
  readonly bytes: Buffer;
  /** False where the file ends in the middle of a line. */
  readonly complete: boolean;
}

/** A server that is writing may be seen in the middle of a line, for some microseconds. */
const LOOKS = 2;
const LOOK_AGAIN_MS = 5;

/** Everything as it stands in the files, sound or not; then what waits in the reserve. */
export async function* readTrail(dir: string): AsyncGenerator<TrailLine> {
  const files = await listDayFiles(dir);
  let lastSeq = 0;
  for (const [index, file] of files.entries()) {
    for await (const line of readFile(dir, file, index === files.length - 1)) {
      lastSeq = readLink(line.bytes)?.seq ?? lastSeq;
      yield line;
    }
  }
  for await (const line of readReserve(dir)) {
    // A server that ended between copying lines out and clearing them leaves them in both places.
    const seq = readLink(line.bytes)?.seq;
    if (seq === undefined || seq > lastSeq) yield line;
  }
}

async function* readFile(dir: string, file: string, isLast: boolean): AsyncGenerator<TrailLine> {
  await using handle = await openRegular(join(dir, file), 'read');
  let number = 0;
  let from = 0;
  for (let look = 1; ; look += 1) {
    let cut: Line | undefined;
    for await (const line of readLines(readerOf(handle), from)) {
      if (!line.complete) {
        cut = line;
        break;
      }
      number += 1;
      yield { file, line: number, bytes: line.bytes, complete: true };
    }
    if (cut === undefined) return;
    if (!isLast || look === LOOKS) {
      yield { file, line: number + 1, bytes: cut.bytes, complete: false };
      return;
    }
    from = cut.offset;
    await delay(LOOK_AGAIN_MS);
  }
}

async function* readReserve(dir: string): AsyncGenerator<TrailLine> {
  let handle: Awaited<ReturnType<typeof openRegular>>;
  try {
    handle = await openRegular(join(dir, RESERVE_FILE), 'read');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return;
    throw error;
  }
  await using _ = handle;
  const [first] = (await handle.read(Buffer.alloc(1), 0, 1, 0)).buffer;
  if (first === 0 || first === undefined) return;
  let number = 0;
  for await (const { bytes, complete } of readLines(readerOf(handle))) {
    // Behind the lines there are zeros, and they have no end of line.
    if (bytes[0] === 0 || !complete) return;
    number += 1;
    yield { file: RESERVE_FILE, line: number, bytes, complete };
  }
}

/** Any record, by the names that its members have in the file. */
export type AnyRecord = Readonly<Record<string, unknown>> & {
  readonly seq: number;
  readonly record: string;
  readonly time_ms: number;
};

/**
 * What the trail says, in order, of the kinds asked for; all else is passed over. Nothing is verified
 * here: the members are as this version writes them if `verify` finds the trail sound.
 */
export async function* readRecords<K extends keyof WrittenRecords>(
  dir: string,
  kinds: readonly K[],
): AsyncGenerator<WrittenRecords[K]> {
  const wanted: readonly string[] = kinds;
  for await (const { bytes, complete } of readTrail(dir)) {
    const link = complete ? readLink(bytes) : undefined;
    if (link === undefined || !wanted.includes(link.record)) continue;
    const record = parseRecord(bytes);
    if (record) yield record as unknown as WrittenRecords[K];
  }
}

/** Undefined when the line is no JSON, or none of ours. */
export function parseRecord(bytes: Buffer): AnyRecord | undefined {
  try {
    const value = JSON.parse(bytes.toString());
    return typeof value.time_ms === 'number' ? value : undefined;
  } catch {
    return undefined;
  }
}
