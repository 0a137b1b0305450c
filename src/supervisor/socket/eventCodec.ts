/** Live output on its way across: an event's bytes are copied into one message and viewed in it. */
import type { ExitStatus, TerminalEvent } from '../../core/event.js';
import type * as wire from '../../gen/internal/grantty/internal/v1/output_pb.js';
import type * as records from '../../gen/internal/grantty/internal/v1/records_pb.js';
import type { LiveItem } from '../api.js';
import { defined } from './arrival.js';
import { decodeSize } from './recordCodec.js';

/**
 * Output bytes that one message holds at most: a batch that holds more goes in several. Far below
 * the bound of a message, since an event holds 64 KiB.
 */
const MAX_FRAME_DATA_BYTES = 256 * 1024;

const NO_BYTES = new Uint8Array(0);

/** The messages that carry one item, in order. */
export function* encodeItem(item: LiveItem): Generator<wire.OutputFrame> {
  if (item.kind === 'resized') {
    const { cols, rows } = item.size;
    yield frame({ resized: { $typeName: 'grantty.internal.v1.Size', cols, rows } });
    return;
  }
  let events: wire.Event[] = [];
  let bytes = 0;
  for (const event of item.events) {
    const encoded = encodeEvent(event);
    if (bytes + encoded.data.length > MAX_FRAME_DATA_BYTES) {
      yield frame({ events });
      events = [];
      bytes = 0;
    }
    events.push(encoded);
    bytes += encoded.data.length;
  }
  yield frame({ events });
}

/** What a message carries; undefined when that is the end. */
export function decodeItem(frame: wire.OutputFrame): LiveItem | undefined {
  if (frame.resized) return { kind: 'resized', size: decodeSize(frame.resized) };
  if (frame.events.length === 0) return undefined;
  return { kind: 'events', events: frame.events.map(decodeEvent) };
}

/** A message without the detour over `create`, which costs more than the rest of its way. */
export function frame(fields: Partial<wire.OutputFrame>): wire.OutputFrame {
  return { $typeName: 'grantty.internal.v1.OutputFrame', events: [], ended: false, ...fields };
}

function encodeEvent(event: TerminalEvent): wire.Event {
  const { type, seq, timeMicros, instance } = event;
  if (type === 'process.exit') {
    return {
      $typeName: 'grantty.internal.v1.Event',
      seq,
      timeMicros,
      data: NO_BYTES,
      instance,
      exit: encodeExit(event),
    };
  }
  return {
    $typeName: 'grantty.internal.v1.Event',
    seq,
    timeMicros,
    data: event.data,
    instance,
    size: event.size && { $typeName: 'grantty.internal.v1.Size', ...event.size },
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
