/** Input on its way across: each key is a message, so it is written by hand. */
import { putVarint, varintSize } from '../../core/varint.js';
import type { Lease } from '../api.js';
import type { FrameParts } from './eventCodec.js';

/** Keys of fields: number << 3 | wire type (protobuf encoding, "Message Structure"). */
const NUMBER_KEY = (1 << 3) | 1;
const DATA_KEY = (2 << 3) | 2;
const LEASE_ID_KEY = (3 << 3) | 2;
const NOT_AFTER_KEY = (4 << 3) | 1;

/** Two doubles, and the four keys. */
const FIXED_BYTES = 2 * 8 + 4;

/** An `InputChunk`, its data last and copied nowhere. A test holds it against the generated decoder. */
export function encodeChunk(number: number, data: Uint8Array, lease: Lease): FrameParts {
  const idBytes = Buffer.byteLength(lease.id);
  const head = Buffer.allocUnsafe(
    FIXED_BYTES + varintSize(idBytes) + idBytes + varintSize(data.length),
  );
  let at = head.writeDoubleLE(number, head.writeUInt8(NUMBER_KEY, 0));
  at = head.writeDoubleLE(lease.notAfter, head.writeUInt8(NOT_AFTER_KEY, at));
  at = putVarint(head, head.writeUInt8(LEASE_ID_KEY, at), idBytes);
  at += head.write(lease.id, at);
  putVarint(head, head.writeUInt8(DATA_KEY, at), data.length);
  return [head, data];
}
