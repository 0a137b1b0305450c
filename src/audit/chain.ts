/** The hash chain: each line carries its number and the hash of the line before it. */
import { hash } from 'node:crypto';

/** Where a chain ends: the number of its last line and the hash of it. */
export interface Head {
  readonly seq: number;
  /** SHA-256 of the line's bytes, its newline included, hex. */
  readonly hash: string;
}

/** Before the first line. */
export const GENESIS: Head = { seq: 0, hash: '0'.repeat(64) };

/** Bytes of one line at most; readers hold no more than one line of a file. */
export const MAX_LINE_BYTES = 8 * 1024 * 1024;

/** Where a line is going to stand. */
export interface Place {
  readonly file: string;
  /** Bytes before the line. */
  readonly offset: number;
}

/** A JSON object as text, or one that signs itself once it is known what it follows. */
export type Draft = string | SignedDraft;

export interface SignedDraft {
  body(place: Place): string;
  /** Signs the whole line as it would stand without the signature; base64url. */
  sign(line: string): string;
}

/** What the line that follows `head` has in the place of its draft's first brace; ASCII. */
export function linkAfter(head: Head): string {
  return `{"seq":${head.seq + 1},"prev":"${head.hash}",`;
}

/** The line that follows `head`. Its hash is that of its bytes. */
export function lineAfter(head: Head, draft: Draft, place: Place): string {
  const body = typeof draft === 'string' ? draft : draft.body(place);
  const unsigned = `${linkAfter(head)}${body.slice(1)}`;
  return typeof draft === 'string'
    ? `${unsigned}\n`
    : `${unsigned.slice(0, -1)},"signature":"${draft.sign(unsigned)}"}\n`;
}

export function hashLine(line: string | Uint8Array): string {
  return hash('sha256', line, 'hex');
}

/** What a line says of its place in the chain, and of which kind it is. */
export interface Link {
  readonly seq: number;
  readonly prev: string;
  readonly record: string;
}

/** What every line begins with, to the byte. */
const LINK = /^\{"seq":([1-9][0-9]{0,15}),"prev":"([0-9a-f]{64})","record":"([a-z_]{1,32})"/;

/** Bytes that LINK can span. */
const MAX_LINK_BYTES = 160;

/** Undefined when the line is none of a trail. */
export function readLink(line: Uint8Array): Link | undefined {
  const start = Buffer.from(line.buffer, line.byteOffset, Math.min(line.length, MAX_LINK_BYTES));
  const [, seq, prev, record] = LINK.exec(start.toString('latin1')) ?? [];
  if (seq === undefined || prev === undefined || record === undefined) return undefined;
  return { seq: Number(seq), prev, record };
}

export function follows({ seq, prev }: Link, head: Head): boolean {
  return seq === head.seq + 1 && prev === head.hash;
}
