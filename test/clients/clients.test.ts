/** Clients in other languages, generated from the contract as docs/clients.md says, against a server. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { onPath, skipAloud } from '../support/skipAloud.js';

const run = promisify(execFile);
const here = fileURLToPath(new URL('.', import.meta.url));
const root = join(here, '../..');
const protos = join(root, 'proto');

/** Milliseconds to generate and compile, the first time with all that it depends on. */
const BUILD_TIMEOUT_MS = 600_000;

let stateDir: string;
let server: ChildProcess;
let settings: Record<string, string>;

beforeAll(async () => {
  stateDir = await mkdtemp(join(tmpdir(), 'grantty-clients-'));
  server = spawn(
    process.execPath,
    [
      ...[join(root, 'dist/cli/main.js'), 'serve', '--dev', '--state-dir', stateDir],
      ...['--listen', '127.0.0.1:0', '--supervisor', 'in-process'],
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const lines = createInterface({ input: server.stderr ?? process.stdin });
  for await (const line of lines) if (line.startsWith('ctx: serving on')) break;
  // Nobody reads on: its log must not fill the pipe.
  server.stderr?.resume();
  const text = await readFile(join(stateDir, 'dev', 'env'), 'utf8');
  settings = Object.fromEntries(
    [...text.matchAll(/^export (\w+)='(.*)'$/gm)].map(([, name, value]) => [name, value]),
  );
});

afterAll(async () => {
  const end = once(server, 'exit');
  server.kill('SIGTERM');
  await end;
  await rm(stateDir, { recursive: true });
});

/** What each client says of itself, one line a promise; it ends with a code if one does not hold. */
const PROMISES = [
  'a repeated create has one effect',
  'another body under the same request_id is refused',
  'the server knows what was taken of the input',
  'no byte is missing or twice over two streams',
  'a watch that is resumed ends with the exit, then OK',
  'errors carry a reason to branch on',
  'what cannot be seen cannot be told from what is not there',
];

function expectPromises(output: string): void {
  const kept = output.split('\n').map((line) => line.replace(/^ok /, ''));
  expect(kept).toEqual(expect.arrayContaining(PROMISES));
}

function succeeds(program: string, args: readonly string[], cwd: string): Promise<boolean> {
  return run(program, args, { cwd }).then(
    () => true,
    () => false,
  );
}

describe('a generated client', () => {
  it(
    'in Go keeps what docs/clients.md promises',
    async () => {
      if (!onPath('go')) return skipAloud('there is no go here');
      const cwd = join(here, 'go');
      if (!(await succeeds('go', ['mod', 'download'], cwd))) return skipAloud('no Go modules here');
      const PATH = [join(root, 'node_modules/.bin'), process.env.PATH].join(delimiter);
      await run('buf', ['generate', protos], { cwd, env: { ...process.env, PATH } });
      const program = join(stateDir, 'client');
      await run('go', ['build', '-buildvcs=false', '-o', program, '.'], { cwd });
      const { stdout } = await run(program, [], { env: settings });
      expectPromises(stdout);
    },
    BUILD_TIMEOUT_MS,
  );

  it(
    'in Python keeps what docs/clients.md promises',
    async () => {
      const python = process.env.GRANTTY_TEST_PYTHON ?? 'python3';
      const needs = ['-c', 'import grpc, grpc_tools, grpc_status'];
      if (!(await succeeds(python, needs, here))) {
        const install = 'pip install -r test/clients/python/requirements.txt';
        return skipAloud(`${python} has no grpc (${install}, GRANTTY_TEST_PYTHON)`);
      }
      const cwd = join(here, 'python');
      await mkdir(join(cwd, 'gen'), { recursive: true });
      const files = (await readdir(join(protos, 'grantty/v1'))).map((name) =>
        join(protos, 'grantty/v1', name),
      );
      await run(
        python,
        [
          ...['-m', 'grpc_tools.protoc', '-I', protos],
          ...['--python_out=gen', '--grpc_python_out=gen', ...files],
        ],
        { cwd },
      );
      const { stdout } = await run(python, ['client.py'], { cwd, env: settings });
      expectPromises(stdout);
    },
    BUILD_TIMEOUT_MS,
  );

  it(
    'in Rust keeps what docs/clients.md promises',
    async () => {
      if (!onPath('cargo')) return skipAloud('there is no cargo here');
      const cwd = join(here, 'rust');
      if (!(await succeeds('cargo', ['fetch', '--locked'], cwd)))
        return skipAloud('no crates here');
      await run('cargo', ['build', '--quiet', '--locked'], { cwd });
      const { stdout } = await run(join(cwd, 'target/debug/grantty-test-client'), [], {
        env: settings,
      });
      expectPromises(stdout);
    },
    BUILD_TIMEOUT_MS,
  );

  it(
    'in Java keeps what docs/clients.md promises',
    async () => {
      if (!onPath('mvn')) return skipAloud('there is no mvn here');
      const cwd = join(here, 'java');
      // All but the compiler's work, so that everything that it takes is here then.
      const resolve = ['--quiet', '--batch-mode', '-Dmaven.main.skip', 'package'];
      if (!(await succeeds('mvn', resolve, cwd))) return skipAloud('no Maven artifacts here');
      await run('mvn', ['--quiet', '--batch-mode', '--offline', 'package'], { cwd });
      const libraries = await readFile(join(cwd, 'target/classpath'), 'utf8');
      const classpath = [join(cwd, 'target/classes'), libraries.trim()].join(delimiter);
      const { stdout } = await run('java', ['-cp', classpath, 'Client'], { cwd, env: settings });
      expectPromises(stdout);
    },
    BUILD_TIMEOUT_MS,
  );
});
