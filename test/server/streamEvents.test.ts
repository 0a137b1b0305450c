import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import {
  AttachResponseSchema,
  WatchResponseSchema,
} from '../../src/gen/public/grantty/v1/terminal_service_pb.js';
import { encodeEvent, encodeMessage } from '../../src/server/streamEvents.js';

describe('encoded stream events', () => {
  it('write an output byte for byte as the generated encoder does', () => {
    const seq = fc.oneof(
      fc.integer({ min: 1, max: 300 }),
      fc.maxSafeNat().filter((n) => n > 0),
    );
    const time = fc.oneof(fc.nat(2_000_000), fc.nat(4_102_444_800_000_000), fc.constant(1_000_000));
    const data = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 200 }),
      fc.constantFrom(1, 127, 128, 16_383, 16_384, 65_536).map((size) => new Uint8Array(size)),
    );
    fc.assert(
      fc.property(seq, time, data, (number, timeMicros, bytes) => {
        const { message } = encodeEvent({
          type: 'pty.output',
          seq: number,
          timeMicros,
          data: bytes,
        });
        const seconds = Math.floor(timeMicros / 1e6);
        const expected = toBinary(
          WatchResponseSchema,
          create(WatchResponseSchema, {
            event: {
              case: 'output',
              value: {
                seq: BigInt(number),
                time: { seconds: BigInt(seconds), nanos: (timeMicros - seconds * 1e6) * 1000 },
                data: bytes,
              },
            },
          }),
        );
        expect(Buffer.compare(message, expected)).toBe(0);
      }),
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
    expect(fromBinary(WatchResponseSchema, message).event.value).toMatchObject({
      seq: 9n,
      instance: 1,
      time: { seconds: 1n, nanos: 500_000_000 },
      status: { exitCode: 0 },
    });
  });
});
