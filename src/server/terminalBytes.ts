/**
 * Answers that hold terminals, encoded piece by piece: what follows from a record is encoded once for
 * each record, however often it is asked for.
 */
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import type { TerminalRecord } from '../core/terminal.js';
import { putVarint, varintSize } from '../core/varint.js';
import { TerminalSchema } from '../gen/public/grantty/v1/terminal_pb.js';
import {
  GetTerminalResponseSchema,
  ListTerminalsResponseSchema,
} from '../gen/public/grantty/v1/terminal_service_pb.js';
import type { AttachmentInfo, TerminalSnapshot } from '../supervisor/api.js';
import { recordFields, stateFields } from './wire.js';

/** A record never changes: another takes its place. */
const encodedRecords = new WeakMap<TerminalRecord, Uint8Array>();

/** A `Terminal`. Fields of a message may come in any order (protobuf, Encoding). */
export function encodeTerminal(
  snapshot: TerminalSnapshot,
  attachments: readonly AttachmentInfo[],
): Uint8Array {
  const { record } = snapshot;
  let encoded = encodedRecords.get(record);
  if (encoded === undefined) {
    encoded = encodeFields(recordFields(record));
    encodedRecords.set(record, encoded);
  }
  const { firstSeq, nextSeq, paused } = snapshot;
  const isPlain = attachments.length === 0 && paused === undefined;
  const state = isPlain
    ? encodeSeqs(firstSeq, nextSeq)
    : encodeFields(stateFields(snapshot, attachments));
  return Buffer.concat([encoded, state]);
}

/** Keys of fields: number << 3 | wire type (protobuf encoding, "Message Structure"). */
const FIRST_SEQ_KEY = varintKey(TerminalSchema.field.firstSeq.number);
const NEXT_SEQ_KEY = varintKey(TerminalSchema.field.nextSeq.number);
const SEQ_KEY_BYTES = varintSize(FIRST_SEQ_KEY) + varintSize(NEXT_SEQ_KEY);
const GET_TERMINAL_KEY =
  (GetTerminalResponseSchema.field.terminal.number << 3) | WireType.LengthDelimited;

function varintKey(fieldNumber: number): number {
  return (fieldNumber << 3) | WireType.Varint;
}

/** What most terminals have to say beside their records, by hand. A test holds it against the encoder. */
function encodeSeqs(firstSeq: number, nextSeq: number): Uint8Array {
  const size = SEQ_KEY_BYTES + varintSize(firstSeq) + varintSize(nextSeq);
  const bytes = Buffer.allocUnsafe(size);
  const at = putVarint(bytes, putVarint(bytes, 0, FIRST_SEQ_KEY), firstSeq);
  putVarint(bytes, putVarint(bytes, at, NEXT_SEQ_KEY), nextSeq);
  return bytes;
}

function encodeFields(fields: MessageInitShape<typeof TerminalSchema>): Uint8Array {
  return toBinary(TerminalSchema, create(TerminalSchema, fields));
}

export function encodeGetTerminalResponse(terminal: Uint8Array): Uint8Array {
  const { length } = terminal;
  const begin = varintSize(GET_TERMINAL_KEY) + varintSize(length);
  const bytes = Buffer.allocUnsafe(begin + length);
  putVarint(bytes, putVarint(bytes, 0, GET_TERMINAL_KEY), length);
  bytes.set(terminal, begin);
  return bytes;
}

export function encodeListTerminalsResponse(
  terminals: readonly Uint8Array[],
  nextPageToken: string,
): Uint8Array {
  const { field } = ListTerminalsResponseSchema;
  const writer = new BinaryWriter();
  for (const terminal of terminals) {
    writer.tag(field.terminals.number, WireType.LengthDelimited).bytes(terminal);
  }
  return writer
    .tag(field.nextPageToken.number, WireType.LengthDelimited)
    .string(nextPageToken)
    .finish();
}
