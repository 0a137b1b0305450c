import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import {
  type AttachRequest,
  AttachRequestSchema,
} from '../../src/gen/public/grantty/v1/terminal_service_pb.js';
import { readInputFrame } from '../../src/server/inputFrame.js';

type Frame = NonNullable<MessageInitShape<typeof AttachRequestSchema>['frame']>;

const encoded = (frame: Frame) =>
  toBinary(AttachRequestSchema, create(AttachRequestSchema, { frame }));
/** Bytes as an array, whatever the class of the view. */
const plain = ({ frame }: AttachRequest) =>
  frame.case === 'input' ? { input: [...frame.value.data] } : frame;

describe('the input frame of Attach, read by hand', () => {
  it('is what the generated decoder reads', () => {
    const data = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 300 }),
      fc
        .constantFrom(1, 125, 126, 127, 128, 16_380, 16_384, 65_536)
        .map((size) => new Uint8Array(size)),
    );
    fc.assert(
      fc.property(data, (bytes) => {
        const message = encoded({ case: 'input', value: { data: bytes } });
        const read = readInputFrame(message);
        expect(read && plain(read)).toEqual(plain(fromBinary(AttachRequestSchema, message)));
        expect(read?.frame.value).toMatchObject({ $typeName: 'grantty.v1.AttachInput' });
      }),
    );
  });

  it.each<Frame>([
    { case: 'open', value: { terminal: { id: 't' } } },
    { case: 'resize', value: { size: { columns: 1, rows: 2 } } },
    { case: 'signal', value: { signal: 2 } },
    { case: 'reauthenticate', value: { token: 't' } },
    { case: 'input', value: {} },
  ])('leaves other frames to the generated decoder: $case', (frame) => {
    expect(readInputFrame(encoded(frame))).toBeUndefined();
    expect(readInputFrame(new Uint8Array(0))).toBeUndefined();
  });

  it('never reads bytes differently, whatever they are', () => {
    const near = fc
      .tuple(
        fc.constantFrom(0x12, 0x0a),
        fc.nat(255),
        fc.constantFrom(0x0a, 0x12),
        fc.nat(255),
        fc.uint8Array(),
      )
      .map(([a, b, c, d, rest]) => Uint8Array.of(a, b, c, d, ...rest));
    fc.assert(
      fc.property(fc.oneof(near, fc.uint8Array()), (bytes) => {
        const read = readInputFrame(bytes);
        if (read) expect(plain(read)).toEqual(plain(fromBinary(AttachRequestSchema, bytes)));
      }),
      { numRuns: 5_000 },
    );
  });
});
