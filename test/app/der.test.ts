import * as der from '../../src/app/der.js';

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

describe('DER', () => {
  it.each([
    ['00', '020100'],
    ['7f', '02017f'],
    ['80', '02020080'],
    ['00000100', '02020100'],
  ])('writes the number %s in the fewest bytes that keep it positive', (bytes, expected) => {
    expect(hex(der.integer(Buffer.from(bytes, 'hex')))).toBe(expected);
  });

  it.each([
    [127, '047f'],
    [128, '048180'],
    [255, '0481ff'],
    [256, '04820100'],
    [65_536, '0483010000'],
  ])('writes a length of %d bytes', (length, expected) => {
    const written = der.octetString(Buffer.alloc(length));
    expect(hex(written.subarray(0, written.length - length))).toBe(expected);
  });

  it('writes object identifiers of large arcs', () => {
    // The two examples of X.690, section 8.19, and of everyday certificates.
    expect(hex(der.objectIdentifier('2.999.3'))).toBe('0603883703');
    expect(hex(der.objectIdentifier('1.2.840.113549.1.1.11'))).toBe('06092a864886f70d01010b');
  });

  it('writes times in two digits of the year through 2049, and in four from then on', () => {
    expect(der.time(new Date('2049-12-31T23:59:59.999Z')).toString('latin1')).toBe(
      '\x17\x0d491231235959Z',
    );
    expect(der.time(new Date('2050-01-01T00:00:00Z')).toString('latin1')).toBe(
      '\x18\x0f20500101000000Z',
    );
  });
});
