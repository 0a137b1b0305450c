import { UsageError } from '../../src/cli/exitCode.js';
import { parseCount, parseDuration, parsePairs, parseSize } from '../../src/cli/values.js';

describe('a size', () => {
  it('is columns, then rows', () => {
    expect(parseSize('120x40')).toEqual({ columns: 120, rows: 40 });
    expect(parseSize('1X1000')).toEqual({ columns: 1, rows: 1000 });
  });

  it.each(['', '80', '0x24', '80x0', '1001x1', '80x24x2', '-1x5', '80 x 24'])(
    '%j is a usage error',
    (text) => {
      expect(() => parseSize(text)).toThrow(UsageError);
    },
  );
});

describe('a duration', () => {
  it.each([
    ['5s', 5_000],
    ['500ms', 500],
    ['1.5m', 90_000],
    ['2h', 7_200_000],
    ['3', 3_000],
    ['0', 0],
  ])('%s is %d ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each(['', 's', '-1s', '1d', '1 s', 'NaN'])('%j is a usage error', (text) => {
    expect(() => parseDuration(text)).toThrow(UsageError);
  });
});

describe('pairs', () => {
  it('keep everything after the first equals sign', () => {
    expect(parsePairs('--env', ['A=b=c', 'E='])).toEqual({ A: 'b=c', E: '' });
  });

  it.each([[['A']], [['=b']], [['A=1', 'A=2']]])('%j is a usage error', (pairs) => {
    expect(() => parsePairs('--env', pairs)).toThrow(UsageError);
  });
});

describe('a sequence number', () => {
  it('may be as large as the log allows', () => {
    expect(parseCount('--after-seq', '9007199254740993')).toBe(9007199254740993n);
  });

  it.each(['', '-1', '1.5', '0x10', '99999999999999999999'])('%j is a usage error', (text) => {
    expect(() => parseCount('--after-seq', text)).toThrow(UsageError);
  });
});
