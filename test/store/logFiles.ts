/** What is in a log's files, read without the code under test. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TerminalEvent } from '../../src/core/event.js';
import { parseEventLine } from '../../src/store/eventJson.js';
import type { ReadOptions } from '../../src/store/reader/logReader.js';
import { LogReader } from '../../src/store/reader/logReader.js';
import { MARGIN_BYTES } from '../../src/store/reader/passage.js';

/** The longest sound prefix of a file, in the plainest way. */
export function soundLines(bytes: Buffer): { readonly bytes: number; readonly seqs: number[] } {
  const seqs: number[] = [];
  let at = 0;
  for (;;) {
    const newline = bytes.indexOf('\n', at);
    if (newline < 0) return { bytes: at, seqs };
    let seq: number;
    try {
      seq = parseEventLine(bytes.subarray(at, newline)).seq;
    } catch {
      return { bytes: at, seqs };
    }
    const last = seqs.at(-1);
    if (last !== undefined && seq !== last + 1) return { bytes: at, seqs };
    seqs.push(seq);
    at = newline + 1;
  }
}

/** For comparisons of many bytes: the matchers look at each element of a buffer. */
export function digest(...chunks: readonly Uint8Array[]): string {
  const hash = createHash('sha256');
  let length = 0;
  for (const chunk of chunks) {
    hash.update(chunk);
    length += chunk.length;
  }
  return `${length} bytes ${hash.digest('hex')}`;
}

export function outputOf(events: readonly TerminalEvent[]): Uint8Array[] {
  return events.flatMap((event) => (event.type === 'pty.output' ? [event.data] : []));
}

export function eventsFile(dir: string): Buffer {
  return readFileSync(join(dir, 'events.jsonl'));
}

/** The contents of the files that were set aside, in the order of their names. */
export function tornFiles(dir: string): Buffer[] {
  return readdirSync(dir)
    .filter((name) => name.startsWith('events.torn-'))
    .sort()
    .map((name) => readFileSync(join(dir, name)));
}

/** Every event that a new reader gives from `fromSeq` through `throughSeq`. */
export async function readAll(
  dir: string,
  fromSeq = 1,
  throughSeq = Number.MAX_SAFE_INTEGER,
  options: ReadOptions = {},
): Promise<TerminalEvent[]> {
  await using reader = await LogReader.open(dir);
  const events: TerminalEvent[] = [];
  for await (const batch of reader.read(fromSeq, throughSeq, options)) events.push(...batch);
  return events;
}

/** Every event that a new reader shows from `fromSeq` through `throughSeq`, copied, and how it lay there. */
export async function scanAll(
  dir: string,
  fromSeq = 1,
  throughSeq = Number.MAX_SAFE_INTEGER,
): Promise<TerminalEvent[]> {
  await using reader = await LogReader.open(dir);
  const events: TerminalEvent[] = [];
  await reader.scan(fromSeq, throughSeq, (passage) => {
    const outputs = passage.bytes.subarray(MARGIN_BYTES);
    expect(digest(outputs)).toBe(digest(...outputOf(passage.events)));
    expect(passage.lastSeq).toBeGreaterThanOrEqual(passage.events.at(-1)?.seq ?? fromSeq);
    passage.bytes.fill(0, 0, MARGIN_BYTES);
    events.push(...passage.events.map(kept));
    return true;
  });
  return events;
}

/** The same by what is made of each event where it is read. */
export async function makeAll(
  dir: string,
  fromSeq = 1,
  throughSeq = Number.MAX_SAFE_INTEGER,
): Promise<TerminalEvent[]> {
  await using reader = await LogReader.open(dir);
  const events: TerminalEvent[] = [];
  for await (const { items, lastSeq } of reader.readAs(fromSeq, throughSeq, kept)) {
    expect(lastSeq).toBeGreaterThanOrEqual(items.at(-1)?.seq ?? fromSeq);
    events.push(...items);
  }
  return events;
}

/** The event with data of its own; what it had is written over, as anything may be after the call. */
function kept(event: TerminalEvent): TerminalEvent {
  if (event.type !== 'pty.output') return event;
  const data = Buffer.from(event.data);
  event.data.fill(0);
  return { ...event, data };
}
