import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { accountByUid, supplementaryGroups } from '../../src/pty/owner.js';

let dir: string;
let passwd: string;
let group: string;

beforeAll(() => {
  dir = mkdtempSync(`${tmpdir()}/grantty-owner-`);
  passwd = `${dir}/passwd`;
  group = `${dir}/group`;
  writeFileSync(
    passwd,
    [
      'root:x:0:0:root:/root:/bin/bash',
      '# a comment',
      '+nis::::::',
      'broken:x:abc:1::/:/bin/sh',
      'ann:x:1000:100:Ann Example,,,:/home/ann:/bin/zsh',
      'second:x:1000:200::/home/second:/bin/sh',
      'bare:x:1001:1001:::',
      '',
    ].join('\n'),
  );
  writeFileSync(group, 'adm:x:4:syslog,ann\nusers:x:100:\nannex:x:7:annette\ndocker:x:999:ann\n');
});

afterAll(() => {
  rmSync(dir, { recursive: true });
});

describe('an account', () => {
  it('is the first of its uid', async () => {
    expect(await accountByUid(1000, passwd)).toEqual({
      uid: 1000,
      gid: 100,
      name: 'ann',
      home: '/home/ann',
      shell: '/bin/zsh',
    });
  });

  it('has / and /bin/sh where nothing is said', async () => {
    expect(await accountByUid(1001, passwd)).toMatchObject({ home: '/', shell: '/bin/sh' });
  });

  it('is known for a uid without an entry, but has no group', async () => {
    const unknown = { uid: 4242, name: '4242', home: '/', shell: '/bin/sh' };
    expect(await accountByUid(4242, passwd)).toEqual(unknown);
    expect(await accountByUid(4242, `${dir}/missing`)).toEqual(unknown);
  });

  it('is another as soon as the file says so', async () => {
    const changing = `${dir}/changing`;
    writeFileSync(changing, 'ann:x:1000:100::/home/ann:/bin/zsh\n');
    expect(await accountByUid(1000, changing)).toMatchObject({ name: 'ann' });
    writeFileSync(`${changing}+`, 'eve:x:1000:100::/home/eve:/bin/zsh\n');
    renameSync(`${changing}+`, changing);
    expect(await accountByUid(1000, changing)).toMatchObject({ name: 'eve' });
    rmSync(changing);
    expect(await accountByUid(1000, changing)).toMatchObject({ name: '1000' });
  });

  it('has the groups that name it as a member', async () => {
    expect([...(await supplementaryGroups('ann', group))]).toEqual([4, 999]);
    expect([...(await supplementaryGroups('ann', `${dir}/missing`))]).toEqual([]);
  });
});
