/** Durations in requests as milliseconds. */
import { create } from '@bufbuild/protobuf';
import { DurationSchema } from '@bufbuild/protobuf/wkt';
import { inMilliseconds } from '../../src/server/times.js';

const inRange = (seconds: bigint, nanos: number) =>
  inMilliseconds('grace', create(DurationSchema, { seconds, nanos }), 0, 2_000);

describe('a duration in milliseconds', () => {
  it('counts parts of one as one', () => {
    expect(inRange(0n, 0)).toBe(0);
    expect(inRange(0n, 1)).toBe(1);
    expect(inRange(1n, 999_000_001)).toBe(2_000);
  });

  it.each([
    [0n, -1],
    [0n, -999_999],
    [-1n, 0],
    [2n, 1],
  ])('is refused out of its range, by however little: %s s, %s ns', (seconds, nanos) => {
    expect(() => inRange(seconds, nanos)).toThrow('must be 0 to 2 seconds');
  });
});
