/** Live output on its way across: an event's bytes go as they lie and are viewed where they arrive. */
import { toBinary } from '@bufbuild/protobuf';
import type { ExitEvent, ExitStatus, OutputEvent, TerminalEvent } from '../../core/event.js';
import { putVarint, varintAt, varintSize } from '../../core/varint.js';
import type * as wire from '../../gen/internal/grantty/internal/v1/output_pb.js';
import { OutputFrameSchema } from '../../gen/internal/grantty/internal/v1/output_pb.js';
import type * as records from '../../gen/internal/grantty/internal/v1/records_pb.js';
import { SizeSchema } from '../../gen/internal/grantty/internal/v1/records_pb.js';
import type { LiveItem } from '../api.js';
import { defined } from './arrival.js';
import { decodeSize } from './recordCodec.js';

const NO_BYTES = new Uint8Array(0);

/** The body of one message in the parts that it is sent in: what is written here, what lay there. */
export type FrameParts = readonly [head: Uint8Array, data: Uint8Array];

/** The messages that carry one item, in order: one for each event, which is 64 KiB at most. */
export function* encodeItem(item: LiveItem): Generator<FrameParts> {
  if (item.kind === 'resized') {
    const { cols, rows } = item.size;
    yield encodeFrame({ resized: { $typeName: 'grantty.internal.v1.Size', cols, rows } });
    return;
  }
  for (const event of item.events) {
    yield event.type === 'pty.output'
      ? encodeOutput(event)
      : encodeFrame({ events: [exit(event)] });
  }
}

/** Any message of an output connection. */
export function encodeFrame(fields: Partial<wire.OutputFrame>): FrameParts {
  const message = {
    $typeName: 'grantty.internal.v1.OutputFrame',
    events: [],
    ended: false,
    ...fields,
  } as const satisfies wire.OutputFrame;
  return [toBinary(OutputFrameSchema, message), NO_BYTES];
}

/** Keys of fields: number << 3 | wire type (protobuf encoding, "Message Structure"). */
const EVENTS_KEY = (1 << 3) | 2;
const SEQ_KEY = (1 << 3) | 1;
const TIME_KEY = (2 << 3) | 1;
const DATA_KEY = (3 << 3) | 2;
const SIZE_KEY = (4 << 3) | 2;
const INSTANCE_KEY = (5 << 3) | 0;

/** Seq and time, and their keys. */
const EVENT_DOUBLES_BYTES = 2 * 9;

/** Room for what stands before the data of an output: five keys, two doubles, varints, a size. */
const MAX_HEAD_BYTES = 64;

/**
 * By hand, so that the bytes of the output are copied nowhere: they are the last field. A test holds
 * it against the generated decoder.
 */
function encodeOutput({ seq, timeMicros, data, size, instance }: OutputEvent): FrameParts {
  const event = Buffer.allocUnsafe(MAX_HEAD_BYTES);
  let at = event.writeUInt8(SEQ_KEY, 0);
  at = event.writeUInt8(TIME_KEY, event.writeDoubleLE(seq, at));
  at = event.writeDoubleLE(timeMicros, at);
  if (size) {
    const bytes = toBinary(SizeSchema, { $typeName: 'grantty.internal.v1.Size', ...size });
    at = putVarint(event, event.writeUInt8(SIZE_KEY, at), bytes.length);
    event.set(bytes, at);
    at += bytes.length;
  }
  if (instance !== undefined) {
    at = putVarint(event, event.writeUInt8(INSTANCE_KEY, at), instance);
  }
  at = putVarint(event, event.writeUInt8(DATA_KEY, at), data.length);
  const head = Buffer.allocUnsafe(MAX_HEAD_BYTES);
  const begin = putVarint(head, head.writeUInt8(EVENTS_KEY, 0), at + data.length);
  return [head.subarray(0, begin + event.copy(head, begin, 0, at)), data];
}

/**
 * The output that a message carries, quickly, when that is a lone one as `encodeOutput` writes it,
 * without a size; its data is a view. Undefined: for the generated decoder. A test holds it against that.
 */
export function readOutput(body: Buffer): LiveItem | undefined {
  if (body[0] !== EVENTS_KEY) return undefined;
  const eventBytes = varintAt(body, 1);
  const seqAt = 1 + varintSize(eventBytes);
  if (seqAt + eventBytes !== body.length || eventBytes < EVENT_DOUBLES_BYTES) return undefined;
  if (body[seqAt] !== SEQ_KEY || body[seqAt + 9] !== TIME_KEY) return undefined;
  let at = seqAt + EVENT_DOUBLES_BYTES;
  let instance: number | undefined;
  if (body[at] === INSTANCE_KEY) {
    instance = varintAt(body, at + 1);
    at += 1 + varintSize(instance);
  }
  if (body[at] !== DATA_KEY) return undefined;
  const dataBytes = varintAt(body, at + 1);
  const dataAt = at + 1 + varintSize(dataBytes);
  if (dataAt + dataBytes !== body.length) return undefined;
  const event: OutputEvent = {
    type: 'pty.output',
    seq: body.readDoubleLE(seqAt + 1),
    timeMicros: body.readDoubleLE(seqAt + 10),
    data: body.subarray(dataAt),
    ...(instance !== undefined && { instance }),
  };
  return { kind: 'events', events: [event] };
}

/** What a message carries; undefined when that is the end. */
export function decodeItem(frame: wire.OutputFrame): LiveItem | undefined {
  if (frame.resized) return { kind: 'resized', size: decodeSize(frame.resized) };
  if (frame.events.length === 0) return undefined;
  return { kind: 'events', events: frame.events.map(decodeEvent) };
}

function exit(event: ExitEvent): wire.Event {
  const { seq, timeMicros, instance } = event;
  return {
    $typeName: 'grantty.internal.v1.Event',
    seq,
    timeMicros,
    data: NO_BYTES,
    instance,
    exit: encodeExit(event),
  };
}

function encodeExit({ exitCode, signal, reason, survivors }: ExitStatus): records.ExitStatus {
  return { $typeName: 'grantty.internal.v1.ExitStatus', exitCode, signal, reason, survivors };
}

function decodeEvent(event: wire.Event): TerminalEvent {
  const { seq, timeMicros, data, size, instance, exit } = event;
  if (exit) {
    return defined<TerminalEvent & { type: 'process.exit' }>({
      type: 'process.exit',
      seq,
      timeMicros,
      instance,
      exitCode: exit.exitCode,
      signal: exit.signal,
      reason: exit.reason,
      survivors: exit.survivors,
    });
  }
  return {
    type: 'pty.output',
    seq,
    timeMicros,
    data,
    ...(size && { size: { cols: size.cols, rows: size.rows } }),
    ...(instance !== undefined && { instance }),
  };
}
