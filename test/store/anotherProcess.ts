/** The store in a process of its own, which a test may kill: the sources, types stripped. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type Options, transform } from '@swc/core';

/** `explicitResourceManagement` is missing in swc's types. */
const parser: object = { syntax: 'typescript', explicitResourceManagement: true };
const options: Options = { jsc: { target: 'es2022', parser }, module: { type: 'es6' } } as Options;

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Writes core and store as JavaScript below `target`. */
export async function compileStore(target: string): Promise<void> {
  await writeTo(join(target, 'package.json'), '{"type":"module"}');
  await symlink(join(root, 'node_modules'), join(target, 'node_modules'));
  for (const folder of ['core', 'store', 'store/reader']) {
    for (const name of await readdir(join(root, 'src', folder))) {
      if (!name.endsWith('.ts')) continue;
      const source = await readFile(join(root, 'src', folder, name), 'utf8');
      const { code } = await transform(source, options);
      await writeTo(join(target, folder, name.replace(/ts$/, 'js')), code);
    }
  }
}

async function writeTo(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}

export interface Running extends AsyncDisposable {
  readonly child: ChildProcess;
  /** Its next line of output; undefined at the end of it. */
  nextLine(): Promise<string | undefined>;
  kill(signal: NodeJS.Signals): Promise<void>;
}

/** Runs a module, given as text, in the compiled tree `target`. */
export async function run(target: string, program: string, ...args: string[]): Promise<Running> {
  const path = join(target, `program-${process.hrtime.bigint()}.js`);
  await writeTo(path, program);
  const child = spawn(process.execPath, [path, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  const gone = once(child, 'exit');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const kill = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    await gone;
  };
  return {
    child,
    kill,
    nextLine: async () => {
      const { done, value } = await lines.next();
      return done ? undefined : value;
    },
    [Symbol.asyncDispose]: () => kill('SIGKILL'),
  };
}
