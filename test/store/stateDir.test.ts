import { lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { chmod, chown, link, mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { openStateDir } from '../../src/store/stateDir.js';
import { temporaryDir } from './temporaryDir.js';

describe('a state directory', () => {
  it('is made with mode 0700 and an id that stays', async () => {
    await using dir = await temporaryDir();
    const path = join(dir.path, 'a', 'state');
    const first = await openStateDir(path);
    expect(first.id).toMatch(/^[0-9a-f-]{36}$/);
    expect(first).toMatchObject({ path, uid: process.geteuid?.() });
    expect(await openStateDir(path)).toEqual(first);
    expect(lstatSync(path).mode & 0o777).toBe(0o700);
    expect(readdirSync(path).sort()).toEqual(['home', 'state_dir.json']);
    expect(lstatSync(join(path, 'state_dir.json')).mode & 0o777).toBe(0o600);
    expect((await openStateDir(join(dir.path, 'b'))).id).not.toBe(first.id);
  });

  it('has one id for all who open it at the same time', async () => {
    await using dir = await temporaryDir();
    const path = join(dir.path, 'state');
    const opened = await Promise.all(Array.from({ length: 12 }, () => openStateDir(path)));
    expect(new Set(opened.map(({ id }) => id)).size).toBe(1);
    expect(readdirSync(path).sort()).toEqual(['home', 'state_dir.json']);
  });

  it('may be shared ground, whose mode stays, but not where others write', async () => {
    await using dir = await temporaryDir();
    await chmod(dir.path, 0o755);
    await openStateDir(dir.path);
    expect(lstatSync(dir.path).mode & 0o777).toBe(0o755);
    expect(lstatSync(join(dir.path, 'home')).mode & 0o777).toBe(0o700);
    await chmod(dir.path, 0o1777);
    await expect(openStateDir(dir.path)).rejects.toThrow('writable by others');
  });

  it('is refused as a link or a file', async () => {
    await using dir = await temporaryDir();
    await mkdir(join(dir.path, 'real'));
    await symlink('real', join(dir.path, 'link'));
    writeFileSync(join(dir.path, 'file'), '');
    await expect(openStateDir(join(dir.path, 'link'))).rejects.toThrow('not a directory');
    await expect(openStateDir(join(dir.path, 'file'))).rejects.toThrow('not a directory');
    await expect(openStateDir(join(dir.path, 'file', 'state'))).rejects.toThrow(
      `the state directory ${dir.path}/file/state cannot be made: a part of its path is no directory; make it`,
    );
  });

  it('is refused with a later layout or an unsound identity, and left alone', async () => {
    await using dir = await temporaryDir();
    const identity = join(dir.path, 'state_dir.json');
    const { id } = await openStateDir(dir.path);
    for (const [json, message] of [
      [`{"layout":2,"id":"${id}"}`, 'use a later one'],
      [`{"layout":0,"id":"${id}"}`, 'unsound'],
      ['{"layout":1,"id":"me"}', 'unsound'],
      ['{}', 'unsound'],
      ['', 'unsound'],
    ] as const) {
      writeFileSync(identity, json);
      await expect(openStateDir(dir.path)).rejects.toThrow(message);
      expect(readFileSync(identity, 'utf8')).toBe(json);
    }
  });

  it('opens after a crash that left the identity two names', async () => {
    await using dir = await temporaryDir();
    const first = await openStateDir(dir.path);
    await link(join(dir.path, 'state_dir.json'), join(dir.path, 'state_dir.json.0123'));
    expect(await openStateDir(dir.path)).toEqual(first);
  });

  it('of a service user belongs to that user in all its parts when root opens it', async () => {
    if (process.geteuid?.() !== 0) {
      process.stdout.write('skipped: only root can give files away\n');
      return;
    }
    await using dir = await temporaryDir();
    await chown(dir.path, 1234, 2345);
    expect(await openStateDir(dir.path)).toMatchObject({ uid: 1234 });
    for (const name of ['home', 'state_dir.json']) {
      expect(lstatSync(join(dir.path, name))).toMatchObject({ uid: 1234, gid: 2345 });
    }
  });
});
