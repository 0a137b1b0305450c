import { localBy, localPaths } from '../../src/pty/localPaths.js';

const MOUNTS = [
  '22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw',
  '23 22 0:21 / /proc rw - proc proc rw',
  '31 22 0:40 / /mnt/far rw,relatime shared:9 master:2 - nfs4 host:/x rw',
  '32 22 0:41 / /home/a\\040b rw - fuse.sshfs host: rw',
  '33 31 8:2 / /mnt/far/near rw - xfs /dev/sdb1 rw',
  '34 22 0:42 / /auto rw - autofs systemd-1 rw',
  '',
].join('\n');

describe('paths that answer at once', () => {
  it.each([
    ['/', true],
    ['/proc/1/stat', true],
    ['/mnt', true],
    ['/mnt/farther', true],
    ['/mnt/far', false],
    ['/mnt/far/x', false],
    ['/mnt/far/near/x', false],
    ['/home/a b/x', false],
    ['/home/a', true],
    ['/auto/x', false],
  ])('%s: %s', (path, isLocal) => {
    expect(localBy(MOUNTS)(path)).toBe(isLocal);
  });

  it('are none below a root from elsewhere', () => {
    expect(localBy('22 1 0:30 / / rw - nfs host:/root rw\n')('/bin/sh')).toBe(false);
  });

  it('are none where the mounts are told in an unknown way', () => {
    expect(localBy('22 1 0:30 / / rw\n')('/bin/sh')).toBe(false);
  });

  it('are those of /proc here', () => {
    expect(localPaths()('/proc')).toBe(true);
  });
});
