/** How a trail is found again at start: where its chain ends, and what is to be set aside. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { errorCode } from '../core/errors.js';
import { createPrivate, readRegular, syncDirectory } from '../store/files.js';
import type { AuditFile, OpenAuditFile } from './auditFile.js';
import { follows, GENESIS, type Head, hashLine, MAX_LINE_BYTES, readLink } from './chain.js';
import { parseCheckpoint } from './checkpoint.js';
import { readLines } from './lines.js';
import type { Reserve } from './reserve.js';
import { HEAD_FILE, listDayFiles, tornFile } from './trailFiles.js';

/** What could not be part of the chain; the bytes are kept in `file`. */
export interface Torn {
  readonly file: string;
  readonly bytes: number;
  /** SHA-256 of the bytes, hex. */
  readonly sha256: string;
  /**
   * `incomplete`: the end of a write that a crash or power cut left undone. `unsound`: whole lines
   * that do not follow from those before, which no crash makes.
   */
  readonly reason: 'incomplete' | 'unsound';
}

export interface Recovered {
  /** The latest file, open and ending with a whole line; undefined when there is none yet. */
  readonly current?: { readonly name: string; readonly file: AuditFile };
  readonly head: Head;
  /** Whether the last line says that the server ended in order. */
  readonly sealed: boolean;
  readonly torn: readonly Torn[];
}

interface End {
  readonly head: Head;
  readonly offset: number;
  readonly sealed: boolean;
  /** Whole lines follow that are not of the chain. */
  readonly unsound: boolean;
}

/** Reads from the latest checkpoint on, or the whole of the last file where HEAD does not fit it. */
export async function recover(
  dir: string,
  open: OpenAuditFile,
  timeMs: number,
): Promise<Recovered> {
  const names = await listDayFiles(dir);
  const name = names.at(-1);
  if (name === undefined) return { head: GENESIS, sealed: true, torn: [] };
  const file = await open(join(dir, name));
  try {
    const end = (await endOf(dir, name, file)) ?? (await endBefore(dir, names, open));
    const torn: Torn[] = [];
    if (end.offset < file.size) {
      torn.push(
        await setAside(dir, tornFile(name, timeMs), {
          read: file.read.bind(file),
          from: end.offset,
          to: file.size,
          reason: end.unsound ? 'unsound' : 'incomplete',
        }),
      );
      await file.truncate(end.offset);
    }
    return { current: { name, file }, head: end.head, sealed: end.sealed, torn };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** The last file holds no line of the chain yet: the chain ends in an earlier one. */
async function endBefore(dir: string, names: readonly string[], open: OpenAuditFile): Promise<End> {
  for (const name of names.slice(0, -1).reverse()) {
    const file = await open(join(dir, name));
    try {
      const end = await endOf(dir, name, file);
      if (end) return { ...end, offset: 0 };
    } finally {
      await file.close();
    }
  }
  return { head: GENESIS, offset: 0, sealed: true, unsound: false };
}

/** Where the chain in one file ends; undefined when its first line is none of a chain. */
async function endOf(dir: string, name: string, file: AuditFile): Promise<End | undefined> {
  const checkpoint = await checkpointIn(dir, name, file);
  let end: End | undefined;
  for await (const { bytes, offset, complete } of readLines(
    file.read.bind(file),
    checkpoint ?? 0,
  )) {
    const link = complete ? readLink(bytes) : undefined;
    if (link === undefined) return end && { ...end, unsound: false };
    // The first line is where looking begins; whether it is the right one is for `verify` to say.
    if (end && !follows(link, end.head)) return { ...end, unsound: true };
    const isFinal = link.record === 'checkpoint' && parseCheckpoint(bytes.toString())?.final;
    end = {
      head: { seq: link.seq, hash: hashLine(bytes) },
      offset: offset + bytes.length,
      sealed: isFinal === true,
      unsound: false,
    };
  }
  return end;
}

/** Where the line that HEAD holds stands in the file, to the byte. */
async function checkpointIn(
  dir: string,
  name: string,
  file: AuditFile,
): Promise<number | undefined> {
  const line = await readHead(dir);
  const checkpoint = line === undefined ? undefined : parseCheckpoint(line);
  if (line === undefined || checkpoint?.file !== name) return undefined;
  const found = Buffer.alloc(Buffer.byteLength(line));
  await file.read(found, 0, found.length, checkpoint.offset);
  return found.toString() === line ? checkpoint.offset : undefined;
}

export async function readHead(dir: string): Promise<string | undefined> {
  try {
    return (await readRegular(join(dir, HEAD_FILE), MAX_LINE_BYTES)).toString();
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

interface Piece {
  readonly read: AuditFile['read'];
  readonly from: number;
  readonly to: number;
  readonly reason: Torn['reason'];
}

const COPY_BYTES = 256 * 1024;

async function setAside(dir: string, name: string, piece: Piece): Promise<Torn> {
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(COPY_BYTES);
  await using copy = await createPrivate(join(dir, name));
  for (let position = piece.from; position < piece.to; ) {
    const length = Math.min(buffer.length, piece.to - position);
    const { bytesRead } = await piece.read(buffer, 0, length, position);
    if (bytesRead === 0) break;
    const bytes = buffer.subarray(0, bytesRead);
    hash.update(bytes);
    await copy.appendFile(bytes);
    position += bytesRead;
  }
  await copy.sync();
  await syncDirectory(dir);
  const bytes = piece.to - piece.from;
  return { file: name, bytes, sha256: hash.digest('hex'), reason: piece.reason };
}

export interface ReserveState {
  /** Where the chain ends, lines in the reserve included. */
  readonly head: Head;
  /** The bytes of the reserve that the files have not got yet. */
  readonly pending: { readonly from: number; readonly to: number };
  readonly torn: readonly Torn[];
}

/** What a server that ended on a full disk left in the reserve, joined to the chain of the files. */
export async function joinReserve(
  dir: string,
  reserve: Reserve,
  fileHead: Head,
  timeMs: number,
): Promise<ReserveState> {
  const read = reserve.read.bind(reserve);
  const to = reserve.used;
  let head = fileHead;
  let from: number | undefined;
  for await (const { bytes, offset } of readLines(read)) {
    const link = readLink(bytes);
    if (link && follows(link, head)) {
      from ??= offset;
      head = { seq: link.seq, hash: hashLine(bytes) };
    } else if (link === undefined || link.seq > head.seq) {
      const piece: Piece = { read, from: offset, to, reason: 'unsound' };
      const torn = await setAside(dir, tornFile('reserve', timeMs), piece);
      return { head, pending: { from: from ?? offset, to: offset }, torn: [torn] };
    }
  }
  return { head, pending: { from: from ?? to, to }, torn: [] };
}
