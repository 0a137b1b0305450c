/** Varints of the protobuf encoding, for the few messages that are written and read by hand. */

/** Writes `value`, a whole number from 0 to 2^53; answers the offset behind it. */
export function putVarint(bytes: Uint8Array, start: number, value: number): number {
  let at = start;
  let rest = value;
  while (rest >= 0x80) {
    bytes[at++] = (rest % 0x80) | 0x80;
    rest = Math.floor(rest / 0x80);
  }
  bytes[at++] = rest;
  return at;
}

/** Bytes that `putVarint` writes. */
export function varintSize(value: number): number {
  let size = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size += 1;
  return size;
}

/**
 * The number from 0 to 2^28 - 1 at `at`; NaN where there is a longer one, or the end. Behind it
 * `varintSize` bytes have been passed, unless it was written with more than it needs.
 */
export function varintAt(bytes: Uint8Array, at: number): number {
  let value = 0;
  for (let i = 0; i < 4; i += 1) {
    const byte = bytes[at + i];
    if (byte === undefined) break;
    value |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) return value;
  }
  return Number.NaN;
}
