/** Another build of the program in a place of its own: what a deploy puts in place of this one. */
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const PROJECT = new URL('../../', import.meta.url).pathname;

export interface OtherBuild extends AsyncDisposable {
  /** Its `ctx`. */
  readonly program: string;
  /** Changes one of its compiled files. */
  edit(file: string, from: string, to: string): Promise<void>;
}

export async function buildOf(version: string): Promise<OtherBuild> {
  const dir = await mkdtemp(join(tmpdir(), 'grantty-build-'));
  for (const part of ['dist', 'policy']) {
    await cp(join(PROJECT, part), join(dir, part), { recursive: true });
  }
  await symlink(join(PROJECT, 'node_modules'), join(dir, 'node_modules'));
  const manifest = JSON.parse(await readFile(join(PROJECT, 'package.json'), 'utf8'));
  await writeFile(join(dir, 'package.json'), JSON.stringify({ ...manifest, version }));
  return {
    program: join(dir, 'dist/cli/main.js'),
    async edit(file, from, to) {
      const path = join(dir, 'dist', file);
      const text = await readFile(path, 'utf8');
      if (!text.includes(from)) throw new Error(`${file} does not say ${from}`);
      await writeFile(path, text.replace(from, to));
    },
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true }),
  };
}
