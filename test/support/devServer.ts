/** `ctx serve --dev` as a process of its own, from the built program, and clients of it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Client, connect } from '../../src/client/connect.js';
import { stopDetached } from '../../src/supervisor/detached.js';

/** Milliseconds in which a detached supervisor ends with its terminals. */
const SUPERVISOR_END_MS = 20_000;

export const CTX = new URL('../../dist/cli/main.js', import.meta.url).pathname;

export interface DevServer extends AsyncDisposable {
  readonly pid: number;
  /** What its `dev/env` says. */
  readonly settings: Readonly<Record<string, string>>;
  client(): Promise<Client>;
  /** All that it has said on standard error so far. */
  said(): string;
  /** Resolves with its exit code or signal once it has ended. */
  end(signal: NodeJS.Signals): Promise<number | NodeJS.Signals>;
}

/**
 * Resolves when the server is ready. A later `--listen` in `flags` wins; `program` may be another
 * build; `wrapper` is a command that executes its arguments in place.
 */
export async function startDevServer(
  stateDir: string,
  flags: readonly string[] = [],
  /** For Node.js, in the server and in the supervisor that it starts. */
  nodeFlags: readonly string[] = [],
  program = CTX,
  wrapper: readonly string[] = [],
): Promise<DevServer> {
  const args = [
    ...nodeFlags,
    program,
    'serve',
    '--dev',
    '--state-dir',
    stateDir,
    '--listen',
    '127.0.0.1:0',
    ...flags,
  ];
  const [executable = '', ...rest] = [...wrapper, process.execPath, ...args];
  const child = spawn(executable, rest, { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (chunk) => {
    said += chunk;
  });
  await ready(child);
  const text = await readFile(join(stateDir, 'dev/env'), 'utf8');
  const settings = Object.fromEntries(
    [...text.matchAll(/^export (\w+)='(.*)'$/gm)].map(([, name, value]) => [name, value ?? '']),
  );
  const clients: Client[] = [];
  const end = async (signal: NodeJS.Signals) => {
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode ?? signal;
    const ended = once(child, 'exit');
    child.kill(signal);
    const [code, by] = await ended;
    return code ?? by;
  };
  return {
    pid: child.pid ?? 0,
    settings,
    said: () => said,
    async client() {
      const client = connect({
        address: settings.GRANTTY_ADDRESS ?? '',
        ca: await readFile(settings.GRANTTY_CA ?? ''),
        token: async () => (await readFile(settings.GRANTTY_TOKEN_FILE ?? '', 'utf8')).trim(),
      });
      clients.push(client);
      return client;
    },
    end,
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.close();
      await end('SIGTERM');
      await stopDetached(stateDir, SUPERVISOR_END_MS);
    },
  };
}

async function ready(child: ChildProcess): Promise<void> {
  if (!child.stderr) throw new Error('the server has no standard error');
  const lines = createInterface({ input: child.stderr });
  await new Promise<void>((resolve, reject) => {
    let said = '';
    lines.on('line', (line) => {
      said += `${line}\n`;
      if (line.startsWith('ctx: serving on')) resolve();
    });
    child.once('exit', () => reject(new Error(`the server ended before it was ready: ${said}`)));
  });
}
