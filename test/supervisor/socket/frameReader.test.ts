import { BinaryWriter } from '@bufbuild/protobuf/wire';
import fc from 'fast-check';
import { FrameReader } from '../../../src/supervisor/socket/frameReader.js';
import { MAX_MESSAGE_BYTES } from '../../../src/supervisor/socket/protocol.js';

function delimited(body: Uint8Array): Uint8Array {
  return new BinaryWriter().bytes(body).finish();
}

function readAll(chunks: readonly Uint8Array[]): { bodies: Buffer[]; incomplete: number } {
  const reader = new FrameReader();
  const bodies: Buffer[] = [];
  for (const chunk of chunks) reader.push(chunk, (body) => bodies.push(Buffer.from(body)));
  return { bodies, incomplete: reader.incompleteBytes };
}

describe('cutting bytes into messages', () => {
  it('gives the same messages however the bytes come', () => {
    const sizes = fc.oneof(fc.nat(3), fc.nat(300), fc.nat(40_000));
    const cuts = fc.array(fc.oneof(fc.constant(1), fc.nat(200), fc.nat(70_000)), { minLength: 1 });
    fc.assert(
      fc.property(fc.array(sizes, { maxLength: 12 }), cuts, (messageSizes, chunkSizes) => {
        const messages = messageSizes.map((size, index) => Buffer.alloc(size, index + 1));
        const bytes = Buffer.concat(messages.map(delimited));
        const chunks: Buffer[] = [];
        for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
          const size = Math.max(1, chunkSizes[turn % chunkSizes.length] ?? 1);
          chunks.push(bytes.subarray(at, at + size));
          at += size;
        }
        const { bodies, incomplete } = readAll(chunks);
        expect(Buffer.concat(bodies).equals(Buffer.concat(messages))).toBe(true);
        expect(bodies.map(({ length }) => length)).toEqual(messageSizes);
        expect(incomplete).toBe(0);
      }),
      { numRuns: 60 },
    );
  });

  it('gives bodies that outlive the chunks they came in', () => {
    const chunk = Buffer.from(delimited(Buffer.from('whole')));
    const bodies: Uint8Array[] = [];
    const reader = new FrameReader();
    for (const part of [chunk, chunk.subarray(0, 3)])
      reader.push(part, (body) => bodies.push(body));
    const rest = Buffer.from(chunk.subarray(3));
    chunk.fill(0);
    reader.push(rest, (body) => bodies.push(body));
    expect(bodies.map(String)).toEqual(['whole', 'whole'].map((text) => String(Buffer.from(text))));
  });

  it('gives an empty message as soon as its size is there', () => {
    expect(readAll([Buffer.of(0, 0)]).bodies.map(({ length }) => length)).toEqual([0, 0]);
  });

  it('takes a message of the largest size and says how much of one is missing', () => {
    const whole = delimited(Buffer.alloc(MAX_MESSAGE_BYTES, 1));
    expect(readAll([whole]).bodies[0]?.length).toBe(MAX_MESSAGE_BYTES);
    expect(readAll([whole.subarray(0, 1000)])).toMatchObject({ bodies: [], incomplete: 1000 });
  });

  it('refuses a larger one as soon as its size is known', () => {
    const size = new BinaryWriter().uint32(MAX_MESSAGE_BYTES + 1).finish();
    expect(() => readAll([size])).toThrow(/1048577 bytes/);
    expect(() => readAll([...size].map((byte) => Buffer.of(byte)))).toThrow(/1048577 bytes/);
  });

  it('refuses a size that no varint has', () => {
    expect(() => readAll([Buffer.alloc(11, 0xff)])).toThrow();
  });
});
