/** A temporary directory that goes away with the test. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface TemporaryDir extends AsyncDisposable {
  readonly path: string;
}

export async function temporaryDir(): Promise<TemporaryDir> {
  const path = await mkdtemp(join(tmpdir(), 'grantty-store-'));
  return {
    path,
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  };
}
