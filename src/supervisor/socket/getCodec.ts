/**
 * The question that precedes every decision, and its usual answer, written by hand: each is asked
 * thousands of times a second. Tests hold them against the generated decoders.
 */
import { isAscii } from 'node:buffer';
import { putVarint, varintAt, varintSize } from '../../core/varint.js';
import type { TerminalKey, TerminalSnapshot } from '../api.js';

/** Keys of fields: number << 3 | wire type (protobuf encoding, "Message Structure"). */
const ID_KEY = (1 << 3) | 0;
const GET_KEY = (10 << 3) | 2;
const SNAPSHOT_KEY = (6 << 3) | 2;
const GET = { key: (1 << 3) | 2, known: (2 << 3) | 1 };
const KEY = { owner: (1 << 3) | 2, id: (2 << 3) | 2, uid: (3 << 3) | 2 };
const SNAPSHOT = { firstSeq: (2 << 3) | 1, nextSeq: (3 << 3) | 1, revision: (6 << 3) | 1 };

/** The key of a double, and the double. */
const DOUBLE_BYTES = 9;

/** A `Request` that asks for a terminal, its size before it. */
export function encodeGet(
  id: number,
  { owner, id: name, uid }: TerminalKey,
  known: number,
): Buffer {
  const key = textSize(owner) + textSize(name) + (uid === undefined ? 0 : textSize(uid));
  const get = 1 + varintSize(key) + key + DOUBLE_BYTES;
  const { bytes, begin } = message(id, GET_KEY, get);
  let at = putVarint(bytes, bytes.writeUInt8(GET.key, begin), key);
  at = putText(bytes, at, KEY.owner, owner);
  at = putText(bytes, at, KEY.id, name);
  if (uid !== undefined) at = putText(bytes, at, KEY.uid, uid);
  putDouble(bytes, at, GET.known, known);
  return bytes;
}

/** What a `get` asks. */
export interface AskedGet {
  readonly id: number;
  /** Its names have not been checked. */
  readonly key: { readonly owner: string; readonly id: string; readonly uid?: string | undefined };
  readonly known: number;
}

/** A body as `encodeGet` makes it; undefined for any other, which the generated decoder reads. */
export function decodeGet(body: Buffer): AskedGet | undefined {
  if (body[0] !== ID_KEY) return undefined;
  // The id, of at most five bytes; each but its last says that another follows.
  let id = 0;
  let at = 1;
  let byte = 0x80;
  for (let factor = 1; byte >= 0x80; factor *= 0x80) {
    if (at > MAX_ID_BYTES) return undefined;
    byte = body[at++] ?? 0;
    id += (byte & 0x7f) * factor;
  }
  if (body[at] !== GET_KEY) return undefined;
  const getBytes = varintAt(body, at + 1);
  const getAt = at + 1 + varintSize(getBytes);
  const keyBytes = varintAt(body, getAt + 1);
  const keyAt = getAt + 1 + varintSize(keyBytes);
  const keyEnd = keyAt + keyBytes;
  const isIt =
    getAt + getBytes === body.length &&
    body[getAt] === GET.key &&
    keyEnd + DOUBLE_BYTES === body.length &&
    body[keyEnd] === GET.known &&
    // What is no sound UTF-8 is for the other decoder to refuse.
    isAscii(body.subarray(keyAt, keyEnd));
  if (!isIt) return undefined;
  const texts: string[] = [];
  for (let next = keyAt; next < keyEnd; ) {
    const size = body[next + 1] ?? MAX_TEXT_BYTES + 1;
    const begin = next + 2;
    const isNext = body[next] === KEY_KEYS[texts.length] && begin + size <= keyEnd;
    if (!isNext || size > MAX_TEXT_BYTES) return undefined;
    next = begin + size;
    texts.push(body.toString('latin1', begin, next));
  }
  const [owner, name, uid] = texts;
  if (owner === undefined || name === undefined || id > LAST_ID) return undefined;
  const known = body.readDoubleLE(keyEnd + 1);
  return { id, key: { owner, id: name, ...(uid !== undefined && { uid }) }, known };
}

/** Of a uint32. */
const MAX_ID_BYTES = 5;
const LAST_ID = 0xffff_ffff;

/** Whose size is one byte; names are no longer. */
const MAX_TEXT_BYTES = 0x7f;

/** The fields of a key in the order in which they are written. */
const KEY_KEYS = [KEY.owner, KEY.id, KEY.uid];

/**
 * The `Reply` to one who has the record, its size before it; undefined where a snapshot has more to
 * say than its seqs.
 */
export function encodeUnchanged(
  id: number,
  { firstSeq, nextSeq, attachments, paused }: TerminalSnapshot,
  revision: number,
): Buffer | undefined {
  if (attachments.length > 0 || paused !== undefined) return undefined;
  const { bytes, begin } = message(id, SNAPSHOT_KEY, 3 * DOUBLE_BYTES);
  let at = putDouble(bytes, begin, SNAPSHOT.firstSeq, firstSeq);
  at = putDouble(bytes, at, SNAPSHOT.nextSeq, nextSeq);
  putDouble(bytes, at, SNAPSHOT.revision, revision);
  return bytes;
}

/** What one who has the record is told of a terminal that is as it was but for its seqs. */
export interface Unchanged {
  readonly case: 'unchanged';
  readonly id: number;
  readonly firstSeq: number;
  readonly nextSeq: number;
  readonly revision: number;
}

/** A body as `encodeUnchanged` makes it; undefined for any other, which the generated decoder reads. */
export function decodeUnchanged(body: Uint8Array): Unchanged | undefined {
  // From the end: there stand three doubles, and before them what has a size that is not fixed.
  const begin = body.length - 3 * DOUBLE_BYTES;
  const isIt =
    begin >= MIN_HEAD_BYTES &&
    begin <= MAX_HEAD_BYTES &&
    body[0] === ID_KEY &&
    body[begin - 2] === SNAPSHOT_KEY &&
    body[begin - 1] === 3 * DOUBLE_BYTES &&
    body[begin] === SNAPSHOT.firstSeq &&
    body[begin + DOUBLE_BYTES] === SNAPSHOT.nextSeq &&
    body[begin + 2 * DOUBLE_BYTES] === SNAPSHOT.revision;
  if (!isIt) return undefined;
  let id = 0;
  for (let at = begin - 3; at > 0; at -= 1) {
    const byte = body[at] ?? 0;
    // Every byte but the last says that another follows.
    if (byte >= 0x80 === (at === begin - 3)) return undefined;
    id = id * 0x80 + (byte & 0x7f);
  }
  doubleBytes.set(body.subarray(begin));
  const double = (index: number) => doubles.getFloat64(index * DOUBLE_BYTES + 1, true);
  return {
    case: 'unchanged',
    id,
    firstSeq: double(0),
    nextSeq: double(1),
    revision: double(2),
  };
}

/** Keys and sizes around an id of one byte, and of five. */
const MIN_HEAD_BYTES = 4;
const MAX_HEAD_BYTES = 8;

/** Where the doubles of one answer are read: a view of each body would be as much work as the rest. */
const doubleBytes = new Uint8Array(3 * DOUBLE_BYTES);
const doubles = new DataView(doubleBytes.buffer);

/** A message with an id and one member of so many bytes, which is to be written from `begin` on. */
function message(id: number, memberKey: number, size: number) {
  const whole = 1 + varintSize(id) + 1 + varintSize(size) + size;
  const bytes = Buffer.allocUnsafe(varintSize(whole) + whole);
  let at = bytes.writeUInt8(ID_KEY, putVarint(bytes, 0, whole));
  at = bytes.writeUInt8(memberKey, putVarint(bytes, at, id));
  return { bytes, begin: putVarint(bytes, at, size) };
}

function textSize(text: string): number {
  const size = Buffer.byteLength(text);
  return 1 + varintSize(size) + size;
}

function putText(bytes: Buffer, start: number, key: number, text: string): number {
  const at = putVarint(bytes, bytes.writeUInt8(key, start), Buffer.byteLength(text));
  return at + bytes.write(text, at);
}

function putDouble(bytes: Buffer, start: number, key: number, value: number): number {
  return bytes.writeDoubleLE(value, bytes.writeUInt8(key, start));
}
