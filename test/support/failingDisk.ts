/** A file system that turns read-only under who writes to it, as ext4 does when its disk fails. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onPath } from './skipAloud.js';

const run = promisify(execFile);

const IMAGE_BYTES = 64 * 1024 * 1024;

/** Of e2fsck(8): mended, with or without a need to start again. */
const MENDED = [1, 2];

export interface FailingDisk extends AsyncDisposable {
  readonly path: string;
  /** From now on nothing can be written, open files included; what was written before is kept. */
  fail(): Promise<void>;
  /** Mended and mounted again. @throws while a file on it is open */
  repair(): Promise<void>;
}

/** Undefined where this machine has no loop devices, no ext4, or does not let us mount. */
export async function failingDisk(): Promise<FailingDisk | undefined> {
  if (process.getuid?.() !== 0 || !['mount', 'mkfs.ext4', 'e2fsck'].every(onPath)) return undefined;
  const dir = await mkdtemp(join(tmpdir(), 'grantty-failing-'));
  const image = join(dir, 'image');
  const path = join(dir, 'disk');
  await mkdir(path);
  const mount = () => run('mount', ['-o', 'loop', image, path]);
  try {
    await run('truncate', ['-s', String(IMAGE_BYTES), image]);
    await run('mkfs.ext4', ['-q', image]);
    await mount();
  } catch {
    await rm(dir, { recursive: true });
    return undefined;
  }
  return {
    path,
    async fail() {
      await run('sync', ['-f', path]);
      await run('mount', ['-o', 'remount,abort', path]);
    },
    async repair() {
      await run('umount', [path]);
      await run('e2fsck', ['-fy', image]).catch((error: { code?: number }) => {
        if (!MENDED.includes(error.code ?? 0)) throw error;
      });
      await mount();
    },
    async [Symbol.asyncDispose]() {
      // Lazy: a test that failed may have files open.
      await run('umount', ['-l', path]).catch(() => {});
      await rm(dir, { recursive: true, force: true });
    },
  };
}
