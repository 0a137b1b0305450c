/** Writes ASN.1 in DER (ITU-T X.690): the few types that a certificate is made of. */

const UNIVERSAL = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectIdentifier: 0x06,
  utf8String: 0x0c,
  sequence: 0x30,
  set: 0x31,
  utcTime: 0x17,
  generalizedTime: 0x18,
} as const;

const CONTEXT_PRIMITIVE = 0x80;
const CONTEXT_CONSTRUCTED = 0xa0;

export function sequence(...items: readonly Uint8Array[]): Buffer {
  return element(UNIVERSAL.sequence, Buffer.concat(items));
}

/** A set of one: more would have to be sorted. */
export function setOf(item: Uint8Array): Buffer {
  return element(UNIVERSAL.set, item);
}

export function boolean(value: boolean): Buffer {
  return element(UNIVERSAL.boolean, Buffer.of(value ? 0xff : 0));
}

/** Not negative, most significant byte first. */
export function integer(bytes: Uint8Array): Buffer {
  const significant = bytes.findIndex((byte) => byte !== 0);
  const magnitude = significant < 0 ? Buffer.of(0) : bytes.subarray(significant);
  // The highest bit is the sign.
  const padding = (magnitude[0] ?? 0) >= 0x80 ? Buffer.of(0) : Buffer.alloc(0);
  return element(UNIVERSAL.integer, Buffer.concat([padding, magnitude]));
}

/** `unusedBits` of the last byte do not count. */
export function bitString(bytes: Uint8Array, unusedBits = 0): Buffer {
  return element(UNIVERSAL.bitString, Buffer.concat([Buffer.of(unusedBits), bytes]));
}

export function octetString(bytes: Uint8Array): Buffer {
  return element(UNIVERSAL.octetString, bytes);
}

export function utf8String(text: string): Buffer {
  return element(UNIVERSAL.utf8String, Buffer.from(text));
}

/** As RFC 5280, section 4.1.2.5, has it: whole seconds, UTC, the year in two digits through 2049. */
export function time(date: Date): Buffer {
  const digits = `${date.toISOString().slice(0, 19).replace(/\D/g, '')}Z`;
  return date.getUTCFullYear() < 2050
    ? element(UNIVERSAL.utcTime, Buffer.from(digits.slice(2)))
    : element(UNIVERSAL.generalizedTime, Buffer.from(digits));
}

/** As `1.2.840.10045.2.1`. */
export function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second, ...rest].flatMap(base128);
  return element(UNIVERSAL.objectIdentifier, Buffer.from(bytes));
}

/** `[number] IMPLICIT` of a primitive type, by its content. */
export function implicit(number: number, content: Uint8Array): Buffer {
  return element(CONTEXT_PRIMITIVE | number, content);
}

/** `[number] EXPLICIT`. */
export function explicit(number: number, item: Uint8Array): Buffer {
  return element(CONTEXT_CONSTRUCTED | number, item);
}

function element(tag: number, content: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(tag), lengthOf(content), content]);
}

/** One byte up to 127, else the count of the bytes that follow and these. */
function lengthOf({ length }: Uint8Array): Buffer {
  if (length < 0x80) return Buffer.of(length);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest >>= 8) bytes.unshift(rest & 0xff);
  return Buffer.of(0x80 | bytes.length, ...bytes);
}

/** Seven bits a byte, all but the last one marked. */
function base128(value: number): number[] {
  const bytes = [value & 0x7f];
  for (let rest = value >> 7; rest > 0; rest >>= 7) bytes.unshift(0x80 | (rest & 0x7f));
  return bytes;
}
