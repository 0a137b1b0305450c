import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, lstatSync, readFileSync, writeFileSync } from 'node:fs';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { acquireLock, lockHolder } from '../../src/store/lock.js';
import { compileStore, run } from './anotherProcess.js';
import { temporaryDir } from './temporaryDir.js';

const HOLDER = `
  import { acquireLock } from './store/lock.js';
  import { spawn } from 'node:child_process';
  const lock = await acquireLock(process.argv[2]);
  const child = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' });
  console.log(child.pid);
  setInterval(() => {}, 1000);
`;

describe('an exclusive lock', () => {
  it('is held by one, names it, and can be taken again once it is given back', async () => {
    await using dir = await temporaryDir();
    const path = join(dir.path, 'lock');
    {
      await using _lock = await acquireLock(path);
      expect(lstatSync(path).mode & 0o777).toBe(0o600);
      expect(readFileSync(path, 'utf8')).toBe(`${process.pid}\n`);
      await expect(acquireLock(path)).rejects.toMatchObject({
        code: 'ELOCKED',
        message: `${path} is locked by process ${process.pid}`,
      });
    }
    // What it says holds as long as it is held, and takes room that another holder needs none of.
    expect(readFileSync(path, 'utf8')).toBe(`${process.pid}\n`);
    expect(await lockHolder(path)).toBeUndefined();
    writeFileSync(path, 'something longer than a pid\n');
    await using _again = await acquireLock(path);
    expect(readFileSync(path, 'utf8')).toBe(`${process.pid}\n`);
  });

  it('can be looked at without being taken or written', async () => {
    await using dir = await temporaryDir();
    const path = join(dir.path, 'lock');
    expect(await lockHolder(path)).toBeUndefined();
    expect(existsSync(path)).toBe(false);
    await using _lock = await acquireLock(path);
    chmodSync(path, 0o400);
    expect(await lockHolder(path)).toBe(`${path} is locked by process ${process.pid}`);
  });

  it('is free again when its holder is killed, though a child of the holder lives on', async () => {
    await using dir = await temporaryDir();
    const path = join(dir.path, 'lock');
    await compileStore(join(dir.path, 'js'));
    await using holder = await run(join(dir.path, 'js'), HOLDER, path);
    const child = Number(await holder.nextLine());
    try {
      await expect(acquireLock(path)).rejects.toThrow(`locked by process ${holder.child.pid}`);
      await holder.kill('SIGKILL');
      process.kill(child, 0);
      await using _lock = await acquireLock(path);
      expect(readFileSync(path, 'utf8')).toBe(`${process.pid}\n`);
    } finally {
      process.kill(child, 'SIGKILL');
    }
  });

  it('of another program says so where the file names no process', async () => {
    await using dir = await temporaryDir();
    const path = join(dir.path, 'lock');
    writeFileSync(path, '');
    const other = spawn('flock', [path, 'sh', '-c', 'echo held; exec cat'], { stdio: 'pipe' });
    try {
      await once(other.stdout, 'data');
      await expect(acquireLock(path)).rejects.toThrow('locked by another process');
    } finally {
      other.stdin.end();
      await once(other, 'exit');
    }
    await using _lock = await acquireLock(path);
  });

  it('is refused on a link or a FIFO, and follows none', async () => {
    await using dir = await temporaryDir();
    await symlink('target', join(dir.path, 'link'));
    execFileSync('mkfifo', [join(dir.path, 'fifo')]);
    await expect(acquireLock(join(dir.path, 'link'))).rejects.toMatchObject({ code: 'ELOOP' });
    await expect(acquireLock(join(dir.path, 'fifo'))).rejects.toThrow('not a regular file');
    expect(() => lstatSync(join(dir.path, 'target'))).toThrow();
  }, 5_000);
});
