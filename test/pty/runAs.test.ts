import { describe, expect, it } from '@jest/globals';
import { childLaunch } from '../../src/pty/launch.js';
import { parseOwnerUid } from '../../src/pty/runAs.js';

describe('the uid of an owner', () => {
  it.each([
    ['1000', 1000],
    ['65534', 65534],
    ['4294967294', 4294967294],
  ])('%s is %d', (owner, uid) => {
    expect(parseOwnerUid(owner, 1000)).toBe(uid);
  });

  it.each([
    '0',
    '00',
    '01000',
    '999',
    '+1000',
    '-1',
    '1e3',
    '0x3e8',
    '1000 ',
    '',
    '4294967295',
    '4294967296',
    '18446744073709551616',
    'root',
    'bob',
    '１０００',
  ])('is refused for %j', (owner) => {
    expect(() => parseOwnerUid(owner, 1000)).toThrow(
      expect.objectContaining({ reason: 'FIELD_INVALID' }),
    );
  });

  it('0 is served only where the least uid says so', () => {
    expect(parseOwnerUid('0', 0)).toBe(0);
    expect(() => parseOwnerUid('0', 1)).toThrow();
  });
});

describe('a launch', () => {
  it('shows no value of a variable in an argv, which everybody can read', () => {
    const { argv } = childLaunch(
      { argv: ['/bin/true'], env: { LD_PRELOAD: 'value-1', MY: 'value-2' } },
      { uid: 1000 },
    );
    expect(argv.join(' ')).not.toMatch(/value-/);
    expect(argv.at(-1)).toBe('/bin/true');
  });

  it.each(['GRANTTY_LAUNCH_0', 'OPTIND', 'PPID', 'LD_X; id', 'A B', '1A', ''])(
    'refuses the variable %j',
    (name) => {
      expect(() => childLaunch({ argv: ['/bin/true'], env: { [name]: '' } }, undefined)).toThrow(
        expect.objectContaining({ reason: 'FIELD_INVALID' }),
      );
    },
  );
});
