/** Standard base64 (RFC 4648, section 4) read strictly: canonical, or not at all. */

const PADDING = 0x3d;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
/** No digit's value has this bit. */
const FOREIGN = 0x40;

/** The value of each byte as a base64 digit. */
const DIGITS = new Uint8Array(256).fill(FOREIGN);
for (const [value, digit] of Buffer.from(ALPHABET).entries()) DIGITS[digit] = value;

/** Characters up to which our own loop is quicker than the way into the native decoder and back. */
const LOOP_LENGTH = 128;

/** Gives a place for decoded bytes; what is not used of it, as the text was none, is forgotten. */
export type Allocate = (size: number) => Buffer;

/**
 * The bytes that the canonical base64 from `start` to `end` stands for; undefined when it is
 * anything else, stands for none, or for more than `maxBytes`.
 */
export function decodeBase64(
  bytes: Buffer,
  start: number,
  end: number,
  maxBytes: number,
  allocate: Allocate = Buffer.allocUnsafe,
): Buffer | undefined {
  const length = end - start;
  if (length <= 0 || length % 4 !== 0) return undefined;
  const padding = bytes[end - 1] !== PADDING ? 0 : bytes[end - 2] !== PADDING ? 1 : 2;
  const size = (length / 4) * 3 - padding;
  if (size > maxBytes) return undefined;
  const data = allocate(size);
  // The last group, where padding may stand, is always left to the loop.
  const last = end - 4;
  const looped = length <= LOOP_LENGTH ? start : last;
  if (looped > start && !decodeNatively(bytes, start, last, data)) return undefined;
  return decodeGroups(bytes, looped, end, padding, data) ? data : undefined;
}

/** Whole groups without padding into the beginning of `data`; false when they are no base64. */
function decodeNatively(bytes: Buffer, start: number, end: number, data: Buffer): boolean {
  const digits = bytes.subarray(start, end);
  // The native decoder takes the URL alphabet too; it passes over what is foreign to both, which
  // shows in the count.
  if (digits.includes(0x2d) || digits.includes(0x5f)) return false;
  return data.write(digits.toString('latin1'), 'base64') === (digits.length / 4) * 3;
}

/** Groups into the end of `data`, the last one with its padding; false when they are no base64. */
function decodeGroups(
  bytes: Buffer,
  start: number,
  end: number,
  padding: number,
  data: Buffer,
): boolean {
  let to = data.length + padding - ((end - start) / 4) * 3;
  let foreign = 0;
  for (let at = start; at < end; at += 4) {
    const missing = at === end - 4 ? padding : 0;
    const a = digit(bytes, at);
    const b = digit(bytes, at + 1);
    const c = missing > 1 ? 0 : digit(bytes, at + 2);
    const d = missing > 0 ? 0 : digit(bytes, at + 3);
    foreign |= a | b | c | d;
    // Bits behind the last byte must be 0: else two texts would stand for the same bytes.
    if ((missing === 2 && (b & 0x0f) !== 0) || (missing === 1 && (c & 0x03) !== 0)) return false;
    const group = (a << 18) | (b << 12) | (c << 6) | d;
    data[to++] = group >> 16;
    if (missing < 2) data[to++] = group >> 8;
    if (missing < 1) data[to++] = group;
  }
  return (foreign & FOREIGN) === 0;
}

function digit(bytes: Buffer, at: number): number {
  return DIGITS[bytes[at] ?? 0] ?? FOREIGN;
}
