import { execFileSync } from 'node:child_process';
import { lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { chmod, chown, link, lstat, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  createPrivate,
  createPrivateDir,
  ensurePrivateDir,
  isTemporary,
  openRegular,
  readRegular,
  removeTemporary,
  syncDirectory,
  writeFileAtomic,
} from '../../src/store/files.js';
import { temporaryDir } from './temporaryDir.js';

const mode = (path: string) => lstatSync(path).mode & 0o777;

describe('the sync of a directory', () => {
  it('is shared by those who ask while another one runs, and is none that began before', async () => {
    await using dir = await temporaryDir();
    const first = syncDirectory(dir.path);
    expect(syncDirectory(dir.path)).toBe(first);
    // It has begun by then.
    await new Promise((resolve) => process.nextTick(resolve));
    const second = syncDirectory(dir.path);
    expect(second).not.toBe(first);
    expect(syncDirectory(dir.path)).toBe(second);
    await Promise.all([first, second]);
    expect(syncDirectory(dir.path)).not.toBe(second);
  });

  it('that fails fails those who wait for it, and not the next one', async () => {
    await using dir = await temporaryDir();
    const path = join(dir.path, 'later');
    const early = [syncDirectory(path), syncDirectory(path)];
    for (const sync of early) await expect(sync).rejects.toMatchObject({ code: 'ENOENT' });
    await mkdir(path);
    await syncDirectory(path);
  });
});

describe('writing a file whole', () => {
  it('makes it with mode 0600, replaces it, and leaves nothing else', async () => {
    await using dir = await temporaryDir();
    const path = join(dir.path, 'file');
    await writeFileAtomic(path, 'one');
    expect(mode(path)).toBe(0o600);
    await writeFileAtomic(path, Buffer.from([0, 255]), { sync: false });
    expect(readFileSync(path)).toEqual(Buffer.from([0, 255]));
    expect(mode(path)).toBe(0o600);
    expect(readdirSync(dir.path)).toEqual(['file']);
  });

  it('replaces a symbolic or hard link and leaves what it led to alone', async () => {
    await using dir = await temporaryDir();
    const outside = join(dir.path, 'outside');
    await writeFile(outside, 'theirs');
    await symlink(outside, join(dir.path, 'soft'));
    await link(outside, join(dir.path, 'hard'));
    for (const name of ['soft', 'hard']) {
      await writeFileAtomic(join(dir.path, name), 'ours');
      expect(lstatSync(join(dir.path, name)).isFile()).toBe(true);
      expect(readFileSync(outside, 'utf8')).toBe('theirs');
    }
  });

  it('keeps the old content and no temporary file when it fails', async () => {
    await using dir = await temporaryDir();
    const path = join(dir.path, 'taken');
    await mkdir(path);
    await expect(writeFileAtomic(path, 'x')).rejects.toMatchObject({ code: 'EISDIR' });
    expect(readdirSync(dir.path)).toEqual(['taken']);
    await expect(writeFileAtomic(join(dir.path, 'no', 'file'), 'x')).rejects.toMatchObject({
      code: 'ENOENT',
    });
  });

  it('shows readers the old content or the new, never another', async () => {
    await using dir = await temporaryDir();
    const path = join(dir.path, 'file');
    const contents = ['a'.repeat(50_000), 'b'.repeat(70_000)];
    await writeFileAtomic(path, contents[0] ?? '');
    let writing = true;
    const write = async () => {
      for (let i = 0; i < 60; i++)
        await writeFileAtomic(path, contents[i % 2] ?? '', { sync: false });
      writing = false;
    };
    const read = async () => {
      while (writing) {
        expect(contents).toContain((await readRegular(path, 100_000)).toString());
      }
    };
    await Promise.all([write(), read(), read()]);
    expect(readdirSync(dir.path).filter(isTemporary)).toEqual([]);
  });
});

describe('temporary files of writers that were killed', () => {
  it('are removed, of one file or of all, and nothing else', async () => {
    await using dir = await temporaryDir();
    const left = ['.tmp-a-01', '.tmp-a-02', '.tmp-b-01'];
    for (const name of [...left, 'a', '.other']) writeFileSync(join(dir.path, name), '');
    await removeTemporary(dir.path, 'a');
    expect(readdirSync(dir.path).sort()).toEqual(['.other', '.tmp-b-01', 'a']);
    await removeTemporary(dir.path);
    expect(readdirSync(dir.path).sort()).toEqual(['.other', 'a']);
  });
});

describe('opening a file of ours', () => {
  it.each(['symbolic link', 'hard link', 'FIFO', 'directory', 'device'])(
    'refuses at once: %s',
    async (kind) => {
      await using dir = await temporaryDir();
      const outside = join(dir.path, 'outside');
      writeFileSync(outside, 'x');
      const path = kind === 'device' ? '/dev/null' : join(dir.path, 'file');
      if (kind === 'symbolic link') await symlink(outside, path);
      if (kind === 'hard link') await link(outside, path);
      if (kind === 'FIFO') execFileSync('mkfifo', [path]);
      if (kind === 'directory') await mkdir(path);
      await expect(openRegular(path, 'read')).rejects.toThrow();
      await expect(openRegular(path, 'write')).rejects.toThrow();
      await expect(readRegular(path, 10)).rejects.toThrow();
      if (kind !== 'device') await expect(createPrivate(path)).rejects.toThrow();
    },
  );

  it('refuses one that is larger than it may be', async () => {
    await using dir = await temporaryDir();
    const path = join(dir.path, 'file');
    writeFileSync(path, '12345');
    expect((await readRegular(path, 5)).toString()).toBe('12345');
    await expect(readRegular(path, 4)).rejects.toThrow('more than 4');
  });
});

describe('private directories', () => {
  it('are found once their names are durable, whoever makes them', async () => {
    await using dir = await temporaryDir();
    const path = join(dir.path, 'a');
    const order: string[] = [];
    const made = createPrivateDir(path);
    // Shares the sync that the making waits for.
    const named = syncDirectory(dir.path).then(() => order.push('named'));
    await ensurePrivateDir(path).then(() => order.push('found'));
    await Promise.all([made, named]);
    expect(order).toEqual(['named', 'found']);
  });

  it('are made with mode 0700, their parents too, and found again', async () => {
    await using dir = await temporaryDir();
    const path = join(dir.path, 'a', 'b', 'c');
    await ensurePrivateDir(path);
    await ensurePrivateDir(path);
    for (const made of [path, join(dir.path, 'a', 'b'), join(dir.path, 'a')]) {
      expect(mode(made)).toBe(0o700);
    }
    expect(await createPrivateDir(path)).toBe(false);
    expect(await createPrivateDir(join(path, 'd'))).toBe(true);
  });

  it('keep the mode they have, and are refused where others may write', async () => {
    await using dir = await temporaryDir();
    const path = join(dir.path, 'there');
    await mkdir(path);
    for (const safe of [0o755, 0o750, 0o700]) {
      await chmod(path, safe);
      await ensurePrivateDir(path);
      expect(mode(path)).toBe(safe);
    }
    for (const unsafe of [0o775, 0o757, 0o1777]) {
      await chmod(path, unsafe);
      await expect(ensurePrivateDir(path)).rejects.toThrow('writable by others');
    }
  });

  it('are refused where a link or a file stands', async () => {
    await using dir = await temporaryDir();
    await mkdir(join(dir.path, 'real'));
    await symlink('real', join(dir.path, 'link'));
    await writeFile(join(dir.path, 'file'), '');
    await expect(ensurePrivateDir(join(dir.path, 'link'))).rejects.toThrow('not a directory');
    await expect(ensurePrivateDir(join(dir.path, 'file'))).rejects.toThrow('not a directory');
    await expect(ensurePrivateDir(join(dir.path, 'file', 'x'))).rejects.toMatchObject({
      code: 'ENOTDIR',
    });
  });

  it('are refused where they belong to somebody else, unless the one above does too', async () => {
    if (!root()) return;
    await using dir = await temporaryDir();
    const theirs = join(dir.path, 'theirs');
    await mkdir(theirs, 0o700);
    await chown(theirs, 1000, 1000);
    await expect(ensurePrivateDir(theirs)).rejects.toThrow('belongs to user 1000');
    await chown(dir.path, 1000, 1000);
    await ensurePrivateDir(theirs);
  });

  it('and files that root makes belong to the owner of the directory above', async () => {
    if (!root()) return;
    await using dir = await temporaryDir();
    await chown(dir.path, 1234, 2345);
    await ensurePrivateDir(join(dir.path, 'a', 'b'));
    await writeFileAtomic(join(dir.path, 'a', 'b', 'file'), 'x');
    for (const path of ['a', 'a/b', 'a/b/file']) {
      expect(await lstat(join(dir.path, path))).toMatchObject({ uid: 1234, gid: 2345 });
    }
  });
});

function root(): boolean {
  if (process.geteuid?.() === 0) return true;
  process.stdout.write('skipped: only root can give files away\n');
  return false;
}
