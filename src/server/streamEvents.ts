/**
 * Encoded messages of the streams Watch and Attach. The two responses share the numbers and types of
 * their events, so one encoding serves both.
 */
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import type { OutputEvent, TerminalEvent, TerminalSize } from '../core/event.js';
import { putVarint, varintSize } from '../core/varint.js';
import { AttachResponseSchema } from '../gen/public/grantty/v1/terminal_service_pb.js';
import { toExitStatus, toSize } from './wire.js';

/** One event of the log, ready to be sent to any number of streams. */
export interface EncodedEvent {
  readonly seq: number;
  readonly message: Uint8Array;
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

export function encodeEvent(event: TerminalEvent): EncodedEvent {
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
  const encoded = { seq, message: encodeOutput(event), isExit: false };
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

/**
 * An `output` event written by hand: it is the one message whose cost counts, and this way its bytes
 * are copied once. A test holds it against the generated encoder.
 */
function encodeOutput({ seq, timeMicros, data }: OutputEvent): Uint8Array {
  const seconds = Math.floor(timeMicros / 1e6);
  const nanos = (timeMicros - seconds * 1e6) * 1000;
  const timeSize =
    (seconds === 0 ? 0 : 1 + varintSize(seconds)) + (nanos === 0 ? 0 : 1 + varintSize(nanos));
  const size =
    1 +
    varintSize(seq) +
    1 +
    varintSize(timeSize) +
    timeSize +
    1 +
    varintSize(data.length) +
    data.length;
  const bytes = Buffer.allocUnsafe(1 + varintSize(size) + size);
  let at = putVarint(bytes, putByte(bytes, 0, OUTPUT_KEY), size);
  at = putVarint(bytes, putByte(bytes, at, SEQ_KEY), seq);
  at = putVarint(bytes, putByte(bytes, at, TIME_KEY), timeSize);
  if (seconds !== 0) at = putVarint(bytes, putByte(bytes, at, SECONDS_KEY), seconds);
  if (nanos !== 0) at = putVarint(bytes, putByte(bytes, at, NANOS_KEY), nanos);
  at = putVarint(bytes, putByte(bytes, at, DATA_KEY), data.length);
  bytes.set(data, at);
  return bytes;
}

function putByte(bytes: Uint8Array, at: number, value: number): number {
  bytes[at] = value;
  return at + 1;
}
