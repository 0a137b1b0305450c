import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CTX, startDevServer } from '../support/devServer.js';

const run = promisify(execFile);

describe('sessions over a supervisor that outlives the server', () => {
  let stateDir: string;

  beforeEach(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'grantty-sessions-'));
  });

  afterEach(async () => {
    await ctx(['supervise', '--stop', '--state-dir', stateDir]);
    await rm(stateDir, { recursive: true });
  });

  /** The command line as a person uses it. */
  async function ctx(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const options = { env: { ...process.env, ...env } };
    try {
      return { code: 0, ...(await run(process.execPath, [CTX, ...args], options)) };
    } catch (error) {
      const { code, stdout, stderr } = error as Readonly<Record<string, unknown>>;
      return { code, stdout: String(stdout), stderr: String(stderr) };
    }
  }

  /** Resolves when the shell's first prompt is there, whatever a person's start-up files take. */
  async function prompted(id: string, env: Readonly<Record<string, string>>): Promise<void> {
    const wait = ['terminal', 'wait', id, '--pattern', '[#$] ', '--timeout', '80s'];
    expect(await ctx(wait, env)).toMatchObject({ code: 0 });
  }

  it('go on after kill -9 of the server, from the command line: send, read, screen, find, close', async () => {
    await using first = await startDevServer(stateDir);
    const atFirst = (...args: string[]) => ctx(['terminal', ...args], first.settings);
    const id = (await atFirst('spawn', 'coder', '--name', 'main')).stdout.trim();
    expect(id).toMatch(/^session-/);
    await prompted(id, first.settings);
    const sent = await atFirst('send', id, 'x=kept; seq 1 100');
    expect(sent).toMatchObject({ code: 0 });
    expect(sent.stdout).toMatch(/\n99\n100\n.*[#$] \n$/);
    await first.end('SIGKILL');

    await using second = await startDevServer(stateDir);
    const atSecond = (...args: string[]) => ctx(['terminal', ...args], second.settings);
    expect((await atSecond('read', id, '--offset', '1', '--count', '2')).stdout).toBe('99\n100\n');
    expect((await atSecond('screen', id)).stdout).toMatch(/100\n.*[#$]\n$/);
    expect(await atSecond('find', id, '^4[23]$')).toMatchObject({
      code: 0,
      stdout: '43:43\n42:42\n',
    });
    expect(await atSecond('find', id, 'nowhere')).toMatchObject({ code: 1, stdout: '' });
    expect((await atSecond('send', id, 'echo "$x"')).stdout).toMatch(/\nkept\n/);
    expect((await atSecond('send', id, 'sleep 1000', '--timeout', '200ms')).code).toBe(124);
    const waiting = await atSecond('send', id, '--no-submit', '--timeout', '200ms', '--json', '');
    const lines = waiting.stdout.trimEnd().split('\n');
    const { result } = JSON.parse(lines.at(-1) ?? '');
    expect(result).toMatchObject({ waitReason: 'WAIT_REASON_TIMEOUT' });
    expect(await atSecond('close', id)).toMatchObject({ code: 0 });
    const late = await atSecond('send', id, 'echo');
    expect(late).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`session ${id} is over`),
    });
    await atSecond('create', 'coder', '--id', 'plain', '--', 'sleep', '1000');
    for (const args of [
      ['send', 'plain', 'echo'],
      ['close', 'plain'],
    ]) {
      const refused = await atSecond(...args);
      expect(refused.code).toBe(1);
      expect(refused.stderr).toMatch(/plain is a terminal and no session: .*Write or Attach/);
    }
  }, 150_000);

  it('a send whose server was killed goes on at the next one, and its text is typed once', async () => {
    await using first = await startDevServer(stateDir);
    const env = { ...first.settings };
    const id = (await ctx(['terminal', 'spawn', 'coder'], env)).stdout.trim();
    await prompted(id, env);
    const file = join(stateDir, 'typed');
    const text = `echo x >> ${file}; sleep 2; wc -l < ${file}`;
    const [host, port] = (env.GRANTTY_ADDRESS ?? '').split(':');
    const client = await first.client();
    const sending = ctx(['terminal', 'send', id, text], env);
    const typed = { case: 'pattern', value: 'sleep' } as const;
    await client.terminals.wait({ terminal: { id }, condition: typed });
    await first.end('SIGKILL');
    client.close();
    await using second = await startDevServer(stateDir, ['--listen', `${host}:${port}`]);
    expect(second.settings.GRANTTY_ADDRESS).toBe(env.GRANTTY_ADDRESS);
    expect(await sending).toMatchObject({ code: 0 });
    expect(await readFile(file, 'utf8')).toBe('x\n');
  }, 150_000);
});
