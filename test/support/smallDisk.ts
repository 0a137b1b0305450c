/** A file system of a few megabytes, for tests of what happens when there is no room, or no writing. */
import { execFile } from 'node:child_process';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onPath } from './skipAloud.js';

const run = promisify(execFile);

export interface SmallDisk extends AsyncDisposable {
  readonly path: string;
  /** Writes into the file until nothing more fits; removing it makes the room again. */
  fill(file: string): Promise<void>;
  /** Remounts it. @throws when a file is open for writing and it shall be read-only */
  remount(mode: 'ro' | 'rw'): Promise<void>;
}

/** Undefined where this machine does not let us mount. */
export async function smallDisk(bytes: number): Promise<SmallDisk | undefined> {
  if (process.getuid?.() !== 0 || !onPath('mount')) return undefined;
  const path = await mkdtemp(join(tmpdir(), 'grantty-disk-'));
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${bytes},mode=700`, 'tmpfs', path]);
  } catch {
    await rm(path, { recursive: true });
    return undefined;
  }
  return {
    path,
    fill: (file) => fill(join(path, file)),
    remount: async (mode) => void (await run('mount', ['-o', `remount,${mode}`, path])),
    async [Symbol.asyncDispose]() {
      // Lazy: a test that failed may have files open.
      await run('umount', ['-l', path]);
      await rm(path, { recursive: true });
    },
  };
}

async function fill(path: string): Promise<void> {
  await using handle = await open(path, 'w');
  const block = Buffer.alloc(64 * 1024);
  let size = block.length;
  while (size > 0) {
    try {
      const { bytesWritten } = await handle.write(block, 0, size);
      if (bytesWritten < size) size = Math.floor(size / 2);
    } catch {
      size = Math.floor(size / 2);
    }
  }
}
