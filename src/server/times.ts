/** Durations and points in time in requests: the protobuf runtime takes any pair of numbers for one. */
import type { Duration, Timestamp } from '@bufbuild/protobuf/wkt';
import { fieldInvalid } from '../core/errors.js';

const NANOS_PER_MS = 1_000_000;
const MAX_NANOS = 999_999_999;
/** Seconds of some 10,000 years: google/protobuf/duration.proto. */
const MAX_DURATION_SECONDS = 315_576_000_000n;
/** The years 1 to 9999: google/protobuf/timestamp.proto. */
const FIRST_SECOND = -62_135_596_800n;
const LAST_SECOND = 253_402_300_799n;

/** Parts of a millisecond count as one. @throws FIELD_INVALID */
export function inMilliseconds(
  field: string,
  duration: Duration,
  min: number,
  max: number,
): number {
  checkDuration(field, duration);
  const ms = Number(duration.seconds) * 1000 + Math.ceil(duration.nanos / NANOS_PER_MS);
  // Less than a millisecond below zero is none either.
  if (duration.nanos >= 0 && ms >= min && ms <= max) return ms;
  throw fieldInvalid(field, `must be ${min / 1000} to ${max / 1000} seconds`);
}

/** @throws FIELD_INVALID for a duration with a part of a second */
export function inWholeSeconds(field: string, duration: Duration): number {
  checkDuration(field, duration);
  return wholeSeconds(field, duration);
}

/** Seconds since the Unix epoch. @throws FIELD_INVALID for a time with a part of a second */
export function inSecondsSinceEpoch(field: string, time: Timestamp): number {
  const { seconds, nanos } = time;
  if (nanos < 0 || nanos > MAX_NANOS || seconds < FIRST_SECOND || seconds > LAST_SECOND) {
    throw fieldInvalid(field, `is no time: nanos must be 0 to ${MAX_NANOS}, the year 1 to 9999`);
  }
  return wholeSeconds(field, time);
}

function checkDuration(field: string, { seconds, nanos }: Duration): void {
  const isInRange =
    Math.abs(nanos) <= MAX_NANOS &&
    seconds >= -MAX_DURATION_SECONDS &&
    seconds <= MAX_DURATION_SECONDS;
  const isOfOneSign = seconds === 0n || nanos === 0 || seconds > 0n === nanos > 0;
  if (isInRange && isOfOneSign) return;
  throw fieldInvalid(
    field,
    `is no duration: seconds and nanos must have one sign, nanos at most ${MAX_NANOS}, seconds at most ${MAX_DURATION_SECONDS}`,
  );
}

function wholeSeconds(field: string, { seconds, nanos }: Duration | Timestamp): number {
  if (nanos !== 0) throw fieldInvalid(field, 'must be whole seconds');
  return Number(seconds);
}
