/** Input on its way across: each key is a message, so it is written and read by hand. */
import { isAscii } from 'node:buffer';
import { fromBinary } from '@bufbuild/protobuf';
import { putVarint, varintAt, varintSize } from '../../core/varint.js';
import {
  type InputAck,
  InputAckSchema,
  type InputChunk,
  InputChunkSchema,
} from '../../gen/internal/grantty/internal/v1/input_pb.js';
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

/** The `InputChunk` of a body: quickly where it is one of ours. Its data is a view. @throws as `fromBinary` */
export function decodeChunk(body: Buffer): InputChunk {
  return readChunk(body) ?? fromBinary(InputChunkSchema, body);
}

/** Undefined: not as `encodeChunk` writes it, which says nothing about whether it is sound. */
function readChunk(body: Buffer): InputChunk | undefined {
  if (body.length < FIXED_BYTES + 2) return undefined;
  if (body[0] !== NUMBER_KEY || body[9] !== NOT_AFTER_KEY || body[18] !== LEASE_ID_KEY) {
    return undefined;
  }
  const idBytes = varintAt(body, 19);
  const idAt = 19 + varintSize(idBytes);
  const idEnd = idAt + idBytes;
  if (body[idEnd] !== DATA_KEY) return undefined;
  const dataBytes = varintAt(body, idEnd + 1);
  const dataAt = idEnd + 1 + varintSize(dataBytes);
  if (dataAt + dataBytes !== body.length) return undefined;
  // What is no sound UTF-8 is for the other decoder to refuse.
  if (!isAscii(body.subarray(idAt, idEnd))) return undefined;
  return {
    $typeName: 'grantty.internal.v1.InputChunk',
    number: body.readDoubleLE(1),
    notAfter: body.readDoubleLE(10),
    leaseId: body.toString('latin1', idAt, idEnd),
    data: body.subarray(dataAt),
    end: false,
  };
}

const THROUGH_KEY = (1 << 3) | 1;
const TAKEN_KEY = (2 << 3) | 1;
/** Two doubles, and their keys. */
const PLAIN_ACK_BYTES = 2 * 9;

/** An `InputAck` that acknowledges and says nothing more. */
export function encodePlainAck(through: number, taken: number): Buffer {
  const bytes = Buffer.allocUnsafe(PLAIN_ACK_BYTES);
  const at = bytes.writeDoubleLE(through, bytes.writeUInt8(THROUGH_KEY, 0));
  bytes.writeDoubleLE(taken, bytes.writeUInt8(TAKEN_KEY, at));
  return bytes;
}

/** The `InputAck` of a body: quickly where it is a plain one. @throws as `fromBinary` */
export function decodeAck(body: Buffer): InputAck {
  const isPlain =
    body.length === PLAIN_ACK_BYTES && body[0] === THROUGH_KEY && body[9] === TAKEN_KEY;
  if (!isPlain) return fromBinary(InputAckSchema, body);
  return {
    $typeName: 'grantty.internal.v1.InputAck',
    through: body.readDoubleLE(1),
    taken: body.readDoubleLE(10),
    failed: 0,
    ended: false,
  };
}
