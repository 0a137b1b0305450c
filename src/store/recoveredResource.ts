/**
 * A resource as a supervisor finds it at its start: its record, what follows from the record made
 * right, and the ends of its log.
 *
 * Read synchronously: nobody is served yet, there may be many thousands, and a call by way of the
 * thread pool costs ten times as much as one of these.
 */
import { lstatSync, readdirSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { TerminalRecord } from '../core/terminal.js';
import { decodeLine, NEWLINE } from './eventCodec.js';
import { isTemporary } from './files.js';
import { readBytesNow, readRegularNow, withRegularNow } from './filesNow.js';
import {
  MAX_METADATA_FILE_BYTES,
  parseRecord,
  projectionsOf,
  writeProjection,
} from './metadata.js';
import { leadingSeq } from './outputLine.js';
import { EVENTS_FILE, META_FILE, sealedFirstSeq } from './paths.js';

/** Bytes at the end of a log that hold its last line when that is an exit: 200 and the signal's name. */
const LAST_LINE_BYTES = 4096;

export interface SeqRange {
  /** Equal to `next` when the log has no event. */
  readonly first: number;
  readonly next: number;
}

export interface RecoveredResource {
  readonly record: TerminalRecord;
  /** Bytes of all parts of the log. */
  readonly logBytes: number;
  /** Undefined when the log does not end as that of an ended process does: it may need repair. */
  readonly seqs: SeqRange | undefined;
}

/**
 * Afterwards the text projections say what the record says, and temporary files of writes that were
 * cut short are gone.
 * @throws ENOENT when there is no meta.json; Error when it is unsound, is not an ordinary file
 * of ours, or is the record of another terminal than its directory's
 */
export async function recoverResource(dir: string): Promise<RecoveredResource> {
  if (!lstatSync(dir).isDirectory()) throw new Error(`${dir} is not a directory`);
  const json = readRegularNow(join(dir, META_FILE), MAX_METADATA_FILE_BYTES);
  const record = parseRecord(dir, json);
  const names = readdirSync(dir);
  for (const name of names) if (isTemporary(name)) unlinkSync(join(dir, name));
  for (const [file, text] of projectionsOf(record)) {
    if (!says(join(dir, file), text)) await writeProjection(dir, file, text);
  }
  return { record, logBytes: bytesOf(dir, names), seqs: seqsOf(dir, names) };
}

function says(path: string, text: string): boolean {
  try {
    const bytes = Buffer.from(text);
    return readRegularNow(path, bytes.length).equals(bytes);
  } catch {
    return false;
  }
}

function bytesOf(dir: string, names: readonly string[]): number {
  return names
    .filter((name) => name === EVENTS_FILE || sealedFirstSeq(name) !== undefined)
    .reduce((sum, name) => sum + lstatSync(join(dir, name)).size, 0);
}

function seqsOf(dir: string, names: readonly string[]): SeqRange | undefined {
  try {
    return withRegularNow(join(dir, EVENTS_FILE), (fd, { size }) => {
      const tail = readBytesNow(fd, Math.max(0, size - LAST_LINE_BYTES), LAST_LINE_BYTES);
      const last = seqOfExit(tail, tail.length < size);
      const head = tail.length < size ? readBytesNow(fd, 0, LAST_LINE_BYTES) : tail;
      const sealed = names.map(sealedFirstSeq).filter((seq) => seq !== undefined);
      const first = sealed.length > 0 ? Math.min(...sealed) : leadingSeq(head, 0, head.length);
      return last === undefined || first === undefined ? undefined : { first, next: last + 1 };
    });
  } catch {
    // Who opens the log for a purpose is told why that cannot be done.
    return undefined;
  }
}

/** Seq of the exit that the log ends with. `partial`: the beginning of `tail` may be within a line. */
function seqOfExit(tail: Buffer, partial: boolean): number | undefined {
  const end = tail.length - 1;
  if (end < 0 || tail[end] !== NEWLINE) return undefined;
  const newline = end === 0 ? -1 : tail.lastIndexOf(NEWLINE, end - 1);
  if (newline < 0 && partial) return undefined;
  const event = decodeLine(tail, newline + 1, end);
  return event.type === 'process.exit' ? event.seq : undefined;
}
