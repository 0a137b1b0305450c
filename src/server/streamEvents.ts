/**
 * Encoded messages of the streams Watch and Attach. The two responses share the numbers and types of
 * their events, so one encoding serves both.
 */
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import type { OutputEvent, TerminalEvent, TerminalSize } from '../core/event.js';
import { BLOCK_BYTES, borrowBlock } from '../core/eventBlocks.js';
import type { Loan } from '../core/loan.js';
import { putVarint, varintSize } from '../core/varint.js';
import { AttachResponseSchema } from '../gen/public/grantty/v1/terminal_service_pb.js';
import { FramedMessage, PREFIX_BYTES } from './framedMessage.js';
import { toExitStatus, toSize } from './wire.js';

/** One event of the log, ready to be sent to any number of streams. */
export interface EncodedEvent {
  readonly seq: number;
  readonly message: Uint8Array | FramedMessage;
  /** Of the memory of the message: who is given the event is its one holder. Absent: it is not used again. */
  readonly loan?: Loan;
  /** The size from this event on, and the message that says so; where the log records one. */
  readonly resized?: EncodedResize;
  readonly isExit: boolean;
}

export interface EncodedResize {
  readonly size: TerminalSize;
  readonly message: Uint8Array;
}

export type StreamEvent = NonNullable<MessageInitShape<typeof AttachResponseSchema>['event']>;

export function encodeMessage(event: StreamEvent): Uint8Array {
  return toBinary(AttachResponseSchema, create(AttachResponseSchema, { event }));
}

/** `room`: what there is in front of the data of an output. The message may lie there, and holds the loan. */
export function encodeEvent(event: TerminalEvent, room?: Room): EncodedEvent {
  const { seq } = event;
  if (event.type === 'process.exit') {
    const value = {
      seq: BigInt(seq),
      time: timestampFromMicros(event.timeMicros),
      instance: event.instance ?? 1,
      status: toExitStatus(event),
    };
    return { seq, message: encodeMessage({ case: 'exited', value }), isExit: true };
  }
  const encoded = { seq, ...encodeOutput(event, room), isExit: false };
  if (event.size === undefined) return encoded;
  return { ...encoded, resized: encodeResize(event.size, seq, event.timeMicros) };
}

export function encodeResize(
  size: TerminalSize,
  fromSeq: number,
  timeMicros?: number,
): EncodedResize {
  const value = {
    size: toSize(size),
    fromSeq: BigInt(fromSeq),
    ...(timeMicros === undefined ? {} : { time: timestampFromMicros(timeMicros) }),
  };
  return { size, message: encodeMessage({ case: 'resized', value }) };
}

function timestampFromMicros(micros: number) {
  const seconds = Math.floor(micros / 1e6);
  return { seconds: BigInt(seconds), nanos: (micros - seconds * 1e6) * 1000 };
}

/** Keys of fields: number << 3 | wire type (protobuf encoding, "Message Structure"). */
const OUTPUT_KEY = (2 << 3) | 2;
const SEQ_KEY = (1 << 3) | 0;
const TIME_KEY = (2 << 3) | 2;
const DATA_KEY = (3 << 3) | 2;
const SECONDS_KEY = (1 << 3) | 0;
const NANOS_KEY = (2 << 3) | 0;

/** Memory in front of an event's data, and as long as what is lent. */
export interface Room {
  readonly bytes: number;
  readonly loan: Loan;
}

/**
 * An `output` event written by hand: it is the one message whose cost counts, and this way its bytes
 * are copied once, or never where there is room in front of them. A test holds it against the
 * generated encoder.
 */
function encodeOutput(
  { seq, timeMicros, data }: OutputEvent,
  room: Room | undefined,
): Pick<EncodedEvent, 'message' | 'loan'> {
  const seconds = Math.floor(timeMicros / 1e6);
  const nanos = (timeMicros - seconds * 1e6) * 1000;
  const timeSize =
    (seconds === 0 ? 0 : 1 + varintSize(seconds)) + (nanos === 0 ? 0 : 1 + varintSize(nanos));
  const headSize =
    1 + varintSize(seq) + 1 + varintSize(timeSize) + timeSize + 1 + varintSize(data.length);
  const size = headSize + data.length;
  const before = PREFIX_BYTES + 1 + varintSize(size) + headSize;

  const { bytes, loan } = memoryFor(data, before, room);
  let at = putVarint(bytes, putByte(bytes, PREFIX_BYTES, OUTPUT_KEY), size);
  at = putVarint(bytes, putByte(bytes, at, SEQ_KEY), seq);
  at = putVarint(bytes, putByte(bytes, at, TIME_KEY), timeSize);
  if (seconds !== 0) at = putVarint(bytes, putByte(bytes, at, SECONDS_KEY), seconds);
  if (nanos !== 0) at = putVarint(bytes, putByte(bytes, at, NANOS_KEY), nanos);
  putVarint(bytes, putByte(bytes, at, DATA_KEY), data.length);
  return { message: new FramedMessage(bytes), ...(loan && { loan }) };
}

/** `data`, and in front of it so many bytes to be written: where it lies if that can be, else a copy. */
function memoryFor(
  data: Uint8Array,
  before: number,
  room: Room | undefined,
): { readonly bytes: Buffer; readonly loan?: Loan } {
  const size = before + data.length;
  if (room && room.bytes >= before) {
    room.loan.hold();
    return { bytes: Buffer.from(data.buffer, data.byteOffset - before, size), loan: room.loan };
  }
  const block = size > BLOCK_BYTES / 2 && size <= BLOCK_BYTES ? borrowBlock() : undefined;
  const bytes = block?.bytes.subarray(0, size) ?? Buffer.allocUnsafe(size);
  bytes.set(data, before);
  return { bytes, ...(block && { loan: block.loan }) };
}

/** Keys of `input_ack` and of its one field. */
const INPUT_ACK_KEY = (8 << 3) | 2;
const BYTES_KEY = (1 << 3) | 0;

/** An `input_ack` event by hand, as it follows on each key. `taken` is above 0. */
export function encodeInputAck(taken: number): Uint8Array {
  const size = 1 + varintSize(taken);
  const bytes = Buffer.allocUnsafe(2 + size);
  const at = putByte(bytes, putByte(bytes, putByte(bytes, 0, INPUT_ACK_KEY), size), BYTES_KEY);
  putVarint(bytes, at, taken);
  return bytes;
}

function putByte(bytes: Uint8Array, at: number, value: number): number {
  bytes[at] = value;
  return at + 1;
}
