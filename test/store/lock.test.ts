import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, lstatSync, readFileSync, writeFileSync } from 'node:fs';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
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

/** Until disposal, by flock(1), which writes no pid. */
async function heldByFlock(path: string, ...how: string[]): Promise<AsyncDisposable> {
  const program = ['sh', '-c', 'echo held; exec cat'];
  const other = spawn('flock', [...how, path, ...program], { stdio: 'pipe' });
  const exit = once(other, 'exit');
  await once(other.stdout, 'data');
  return {
    async [Symbol.asyncDispose]() {
      other.stdin.end();
      await exit;
    },
  };
}

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
    expect(await lockHolder(path)).toEqual({
      pid: process.pid,
      message: `${path} is locked by process ${process.pid}`,
    });
  });

  it('is not seen by one look because of another, and is taken when the look is over', async () => {
    await using dir = await temporaryDir();
    const path = join(dir.path, 'lock');
    await using look = await heldByFlock(path, '--shared');
    expect(await lockHolder(path)).toBeUndefined();
    const acquiring = acquireLock(path);
    const waits = new RegExp(`-> FLOCK .*:${lstatSync(path).ino} `);
    while (!waits.test(readFileSync('/proc/locks', 'utf8'))) await setImmediate();
    await look[Symbol.asyncDispose]();
    await using _lock = await acquiring;
    expect((await lockHolder(path))?.pid).toBe(process.pid);
  });

  it('names no process that was killed and whose pid another one has, before it is written anew', async () => {
    await using dir = await temporaryDir();
    const path = join(dir.path, 'lock');
    writeFileSync(path, `${process.ppid}\n`);
    await using _next = await heldByFlock(path);
    expect(await lockHolder(path)).toEqual({ message: `${path} is locked by another process` });
    await expect(acquireLock(path)).rejects.toThrow('locked by another process');
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
    {
      await using _other = await heldByFlock(path);
      await expect(acquireLock(path)).rejects.toThrow('locked by another process');
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
  });
});
