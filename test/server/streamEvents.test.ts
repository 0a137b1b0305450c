import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import type { OutputEvent } from '../../src/core/event.js';
import { HEAD_BYTES } from '../../src/core/eventBlocks.js';
import { Loan } from '../../src/core/loan.js';
import {
  AttachResponseSchema,
  WatchResponseSchema,
} from '../../src/gen/public/grantty/v1/terminal_service_pb.js';
import { FramedMessage } from '../../src/server/framedMessage.js';
import {
  type EncodedEvent,
  encodeEvent,
  encodeInputAck,
  encodeMessage,
} from '../../src/server/streamEvents.js';

const output: fc.Arbitrary<OutputEvent> = fc.record({
  type: fc.constant('pty.output' as const),
  seq: fc.oneof(
    fc.integer({ min: 1, max: 300 }),
    fc.maxSafeNat().filter((n) => n > 0),
  ),
  timeMicros: fc.oneof(
    fc.nat(2_000_000),
    fc.nat(4_102_444_800_000_000),
    fc.constant(1_000_000),
    fc.constant(Number.MAX_SAFE_INTEGER),
  ),
  data: fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 200 }),
    fc
      .constantFrom(1, 127, 128, 16_383, 16_384, 32_768, 65_536)
      .map((size) => new Uint8Array(size).fill(7)),
  ),
});

/** By the generated encoder, in the frame of gRPC over HTTP/2: not compressed, length, message. */
function frameOf({ seq, timeMicros, data }: OutputEvent): Buffer {
  const seconds = Math.floor(timeMicros / 1e6);
  const message = toBinary(
    WatchResponseSchema,
    create(WatchResponseSchema, {
      event: {
        case: 'output',
        value: {
          seq: BigInt(seq),
          time: { seconds: BigInt(seconds), nanos: (timeMicros - seconds * 1e6) * 1000 },
          data,
        },
      },
    }),
  );
  const length = Buffer.alloc(4);
  length.writeUInt32BE(message.length);
  return Buffer.concat([Buffer.of(0), length, message]);
}

function framed({ message }: EncodedEvent): Buffer {
  if (message instanceof FramedMessage) return message.frame;
  throw new Error('an output without its frame');
}

describe('encoded stream events', () => {
  it('write an output byte for byte as the generated encoder does', () => {
    fc.assert(
      fc.property(output, (event) => {
        const encoded = encodeEvent(event);
        expect(framed(encoded).equals(frameOf(event))).toBe(true);
        encoded.loan?.release();
      }),
    );
  });

  it('write an output where it lies if it has the room, and touch nothing in front of that', () => {
    fc.assert(
      fc.property(output, fc.nat(HEAD_BYTES), (event, bytes) => {
        const memory = Buffer.alloc(HEAD_BYTES + event.data.length + 8, 0xee);
        memory.set(event.data, HEAD_BYTES);
        const data = memory.subarray(HEAD_BYTES, HEAD_BYTES + event.data.length);
        let returned = 0;
        const loan = new Loan(() => {
          returned += 1;
        });
        const encoded = encodeEvent({ ...event, data }, { bytes, loan });
        const frame = framed(encoded);
        expect(frame.equals(frameOf(event))).toBe(true);
        const head = frame.length - data.length;
        expect(head).toBeLessThanOrEqual(HEAD_BYTES);
        expect(frame.buffer === memory.buffer).toBe(head <= bytes);
        const written = head <= bytes ? head : 0;
        expect(memory.subarray(0, HEAD_BYTES - written).every((byte) => byte === 0xee)).toBe(true);
        expect(data.equals(event.data)).toBe(true);
        expect(memory.subarray(-8).every((byte) => byte === 0xee)).toBe(true);
        // The message holds the memory that it lies in, and no other.
        loan.release();
        expect(returned).toBe(head <= bytes ? 0 : 1);
        encoded.loan?.release();
        expect(returned).toBe(1);
      }),
    );
  });

  it('write an acknowledgement of input as the generated encoder does', () => {
    fc.assert(
      fc.property(
        fc.maxSafeNat().filter((n) => n > 0),
        (taken) => {
          const expected = encodeMessage({ case: 'inputAck', value: { bytes: BigInt(taken) } });
          expect(Buffer.compare(encodeInputAck(taken), expected)).toBe(0);
        },
      ),
    );
  });

  it.each([
    { case: 'heartbeat', value: { lastSeq: 7n } },
    { case: 'closing', value: { reason: 1, lastSeq: 7n } },
    { case: 'resized', value: { size: { columns: 1, rows: 2 }, fromSeq: 3n } },
    { case: 'exited', value: { seq: 4n, instance: 1, status: { exitCode: 0 } } },
    { case: 'started', value: { nextSeq: 1n } },
  ] as const)('mean the same on Watch and on Attach: $case', (event) => {
    const message = encodeMessage(event);
    const watched = fromBinary(WatchResponseSchema, message).event;
    expect(watched).toMatchObject(event);
    expect(watched).toEqual(fromBinary(AttachResponseSchema, message).event);
  });

  it('name the first instance, which the log leaves out', () => {
    const { message, isExit } = encodeEvent({
      type: 'process.exit',
      seq: 9,
      timeMicros: 1_500_000,
      exitCode: 0,
    });
    expect(isExit).toBe(true);
    expect(fromBinary(WatchResponseSchema, message as Uint8Array).event.value).toMatchObject({
      seq: 9n,
      instance: 1,
      time: { seconds: 1n, nanos: 500_000_000 },
      status: { exitCode: 0 },
    });
  });
});
