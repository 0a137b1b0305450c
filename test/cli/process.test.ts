/** `ctx` as its users run it: the built program in processes of their own, on pipes and on a terminal. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { openPty, type Pty } from '../../src/pty/pty.js';

const MAIN = new URL('../../dist/cli/main.js', import.meta.url).pathname;

let stateDir: string;
let server: ChildProcess;
let env: Record<string, string>;

/** Resolves with the end of `ctx serve` when it has said that it is ready. */
async function serve(dir: string): Promise<ChildProcess> {
  const args = [
    ...[MAIN, 'serve', '--dev', '--state-dir', dir, '--listen', '127.0.0.1:0'],
    ...['--supervisor', 'in-process'],
  ];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const lines = createInterface({ input: child.stderr });
  for await (const line of lines) {
    if (!line.startsWith('ctx: serving on')) continue;
    // Read on by nobody, its log would fill the pipe.
    setImmediate(() => child.stderr.resume());
    return child;
  }
  throw new Error('the server ended before it was ready');
}

beforeAll(async () => {
  stateDir = await mkdtemp(join(tmpdir(), 'grantty-ctx-'));
  server = await serve(stateDir);
  const text = await readFile(join(stateDir, 'dev', 'env'), 'utf8');
  const settings = [...text.matchAll(/^export (\w+)='(.*)'$/gm)].map(([, name, value]) => [
    name,
    value,
  ]);
  env = {
    PATH: process.env.PATH ?? '',
    HOME: stateDir,
    TERM: 'xterm',
    ...Object.fromEntries(settings),
  };
});

afterAll(async () => {
  const end = once(server, 'exit');
  server.kill('SIGTERM');
  expect(await end).toEqual([0, null]);
  await rm(stateDir, { recursive: true });
});

it('a server for development ends in order with the window that it stood in', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'grantty-window-'));
  try {
    const child = await serve(dir);
    const end = once(child, 'exit');
    child.kill('SIGHUP');
    expect(await end).toEqual([0, null]);
    await expect(readFile(join(dir, 'dev', 'env'))).rejects.toMatchObject({ code: 'ENOENT' });
  } finally {
    await rm(dir, { recursive: true });
  }
});

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `ctx` on pipes. */
function ctx(
  args: readonly string[],
  input = '',
  extra: Record<string, string> = {},
): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [MAIN, ...args],
      { env: { ...env, ...extra }, maxBuffer: 16 * 1024 * 1024 },
      (_, stdout, stderr) => resolve({ code: child.exitCode ?? -1, stdout, stderr }),
    );
    child.stdin?.end(input);
  });
}

describe('ctx on pipes', () => {
  it('says in one line that its output cannot be written', async () => {
    const full = await open('/dev/full', 'w');
    try {
      for (const args of [['version'], ['--help']]) {
        const child = spawn(process.execPath, [MAIN, ...args], {
          stdio: ['ignore', full.fd, 'pipe'],
        });
        let said = '';
        child.stderr?.on('data', (chunk) => {
          said += chunk;
        });
        expect(await once(child, 'close')).toEqual([1, null]);
        expect(said).toMatch(/^ctx: standard output cannot be written: ENOSPC[^\n]*\n$/);
      }
    } finally {
      await full.close();
    }
  });

  it.each(['127.0.0.1:65536', '127.0.0.1:0', '[::1]:99999'])(
    'takes %s for no address of a server',
    async (address) => {
      const { code, stderr } = await ctx(['terminal', 'list'], '', { GRANTTY_ADDRESS: address });
      expect(code).toBe(2);
      expect(stderr).toBe(`ctx: "${address}" is not an address: a port is from 1 to 65535\n`);
    },
  );

  it('refuses a key that would be lost on its way', async () => {
    const { code, stderr } = await ctx(['terminal', 'create', 'a', '--label', '__proto__=x']);
    expect(code).toBe(2);
    expect(stderr).toBe('ctx: --label "__proto__": the key is reserved\n');
  });

  it('exports what was printed as recordings and as text', async () => {
    const script = 'printf "caf\\303"; sleep 0.2; printf "\\251 \\033[1mbold\\033[0m"; exit 3';
    await ctx(['terminal', 'run', 'a', '--id', 'recorded', '--', 'sh', '-c', script]);
    const lines = async (format: string) =>
      (await ctx(['terminal', 'export', 'recorded', '--format', format])).stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
    const [header, ...events] = await lines('asciicast-v3');
    expect(header).toMatchObject({ version: 3, term: { cols: 80, rows: 24 } });
    expect(events.at(-1)).toEqual([expect.any(Number), 'x', '3']);
    const played = (of: unknown[][]) =>
      of.flatMap(([, code, data]) => (code === 'o' ? [data] : [])).join('');
    expect(played(events)).toBe('café \x1b[1mbold\x1b[0m');
    expect(played((await lines('asciicast-v2')).slice(1))).toBe(played(events));
    const { stdout } = await ctx(['terminal', 'export', 'recorded', '--format', 'text']);
    expect(stdout).toBe('café bold');
  });

  it('tells its version', async () => {
    const { version } = JSON.parse(
      await readFile(new URL('../../package.json', import.meta.url), 'utf8'),
    );
    expect(await ctx(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
    expect((await ctx(['version'])).stdout).toBe(`${version}\n`);
  });

  it('runs a command with its output, its input, and its exit code', async () => {
    const run = ['terminal', 'run', 'a', '--session', 's1', '--', '/bin/sh', '-c'];
    const script = 'stty -echo; echo ready; read line; echo "got $line"; exit 7';
    const { code, stdout } = await ctx([...run, script], 'hello\n');
    expect(stdout.split('\r\n')).toContain('got hello');
    expect(code).toBe(7);
  });

  it('exits with 128 and the number of the signal that ended the command', async () => {
    const run = ['terminal', 'run', 'a', '--session', 's2', '--', '/bin/sh', '-c', 'kill -TERM $$'];
    expect((await ctx(run)).code).toBe(143);
  });

  it('prints every byte of a long output', async () => {
    const create = [
      'terminal',
      'create',
      'a',
      '--id',
      'long',
      '--session',
      's3',
      '--',
      'seq',
      '1',
      '100000',
    ];
    expect((await ctx(create)).stdout).toBe('long\n');
    const { code, stdout } = await ctx(['terminal', 'watch', 'long']);
    const expected = Array.from({ length: 100_000 }, (_, index) => `${index + 1}\r\n`).join('');
    expect({ code, isWhole: stdout === expected }).toEqual({ code: 0, isWhole: true });
  });

  it('ends quietly when the reader of its output goes away', async () => {
    const child = spawn(
      '/bin/sh',
      ['-c', '"$0" "$@" | head -n 1', process.execPath, MAIN, 'terminal', 'watch', 'long'],
      {
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    let said = '';
    child.stderr.on('data', (data) => {
      said += data;
    });
    await once(child, 'close');
    expect(said).toBe('');
  });

  it.each([
    ['an unknown command', ['terminal', 'nothing'], {}, 2],
    ['a wrong value', ['terminal', 'resize', 'long', 'big'], {}, 2],
    ['no server', ['terminal', 'list'], { GRANTTY_ADDRESS: '127.0.0.1:1' }, 69],
    ['no such authority', ['terminal', 'list'], { GRANTTY_CA: '' }, 69],
    ['a token that is none', ['terminal', 'list'], { GRANTTY_TOKEN: 'x' }, 77],
    ['a terminal that does not exist', ['terminal', 'status', 'none'], {}, 1],
    ['attach to none', ['terminal', 'attach', 'none'], {}, 255],
    ['a command that does not exist', ['terminal', 'run', 'a', '--', 'no-such-command'], {}, 255],
    ['a wait that takes too long', ['terminal', 'wait', 'sleeper', '--timeout', '100ms'], {}, 124],
  ])('says why and what to do for %s, with its own exit code', async (_, args, extra, code) => {
    if (args.includes('sleeper')) {
      await ctx([
        'terminal',
        'create',
        'a',
        '--id',
        'sleeper',
        '--session',
        's4',
        '--',
        'sleep',
        '60',
      ]);
    }
    const ended = await ctx(args, '', extra);
    expect({ code: ended.code, stdout: ended.stdout }).toEqual({ code, stdout: '' });
    expect(ended.stderr).toMatch(/^(ctx|error): .+/);
  });

  it.each([
    [['terminal', 'spawn', 'a', '--type', 'zsh'], 1, 'must be one of shell'],
    [['terminal', 'write', 't', '--keys', 'Foo'], 2, 'keys are like Enter, Up'],
    [['terminal', 'status', 'none'], 1, 'ctx terminal list'],
    [['grant', 'check', 'terminal.kil', 't'], 1, 'must be one of terminal.create, '],
    [
      ['grant', 'delegate', 'helper', '--actions', 'terminal.kil'],
      2,
      'known are terminal.create, ',
    ],
    [['grant', 'delegate', 'helper', '--ttl', '5h'], 1, '--ttl: must be 1 to '],
    [['terminal', 'run', 'a', '--', 'no-such-command'], 255, 'an absolute path needs none'],
    [['supervise', '--stop', '--state-dir', '/no/such'], 0, 'no supervisor runs on /no/such'],
  ])('tells what would be right: %j', async (args, code, text) => {
    const ended = await ctx(args);
    expect(ended).toMatchObject({ code, stdout: '', stderr: expect.stringContaining(text) });
  });

  it('takes the example of the documents on delegation as it stands', async () => {
    const page = await readFile(new URL('../../docs/authority.md', import.meta.url), 'utf8');
    const [example = ''] = /^ctx grant delegate .*$/m.exec(page) ?? [];
    const line = example.replace(/^ctx/, `'${process.execPath}' '${MAIN}'`);
    const { stdout } = await promisify(execFile)('/bin/sh', ['-c', line], { env });
    expect(stdout).toMatch(/^ey[\w.-]+\n$/);
  });

  it('mints a token that can do what it says and no more', async () => {
    const mint = ['grant', 'mint', '--key', env.GRANTTY_ISSUER_KEY ?? '', '--sub', 'viewer'];
    const grant = [
      '--actions',
      'terminal.read',
      '--owner',
      env.GRANTTY_OWNER ?? '',
      '--agent',
      'a',
    ];
    const { stdout: token } = await ctx([...mint, ...grant, '--session', '*', '--terminal', '*']);
    const reader = { GRANTTY_TOKEN: token.trim() };
    expect((await ctx(['terminal', 'status', 'long', '--json'], '', reader)).code).toBe(0);
    const refused = await ctx(['terminal', 'write', 'long', '--text', 'x'], '', reader);
    expect(refused.code).toBe(77);
    expect(refused.stderr).toContain('terminal.write');
    expect(refused.stderr).toMatch(/decision [\w-]+/);
    const inspected = await ctx(['grant', 'inspect', '-'], token);
    expect(inspected.stdout).toMatch(/^actions +terminal\.read$/m);
    expect(inspected.stdout).not.toContain(token.trim());
  });

  it('starts a terminal again, and waits for a pattern, for silence, and in vain', async () => {
    const script = 'echo "run $((40+2))"; sleep 60';
    const create = ['terminal', 'create', 'a', '--id', 'again', '--session', 's5', '--'];
    await ctx([...create, 'sh', '-c', script]);
    const wait = (...flags: string[]) => ctx(['terminal', 'wait', 'again', ...flags]);
    expect((await wait('--pattern', 'run 4\\d')).code).toBe(0);
    expect((await wait('--idle', '50ms')).code).toBe(0);
    expect((await wait('--pattern', 'never', '--timeout', '200ms')).code).toBe(124);
    await ctx(['terminal', 'kill', 'again']);
    const inVain = await wait('--pattern', 'never');
    expect(inVain).toMatchObject({ code: 1, stderr: 'ctx: the process exited before that\n' });

    expect((await ctx(['terminal', 'rm', 'again', '--uid', 'another'])).code).toBe(1);
    expect((await ctx(['terminal', 'start', 'again'])).stdout).toBe('again\n');
    expect((await ctx(['terminal', 'rm', 'again'])).stderr).toContain(
      'TERMINAL_EXISTS: the terminal is still running; stop or kill it first',
    );
    await ctx(['terminal', 'kill', 'again']);
    expect(await ctx(['terminal', 'rm', 'again'])).toEqual({ code: 0, stdout: '', stderr: '' });
    expect((await ctx(['terminal', 'status', 'again'])).stderr).toContain('TERMINAL_NOT_FOUND');
  });

  it('leaves nothing of a command that is run with --rm', async () => {
    const run = ['terminal', 'run', 'a', '--id', 'once', '--session', 's6', '--rm', '--'];
    expect((await ctx([...run, 'sh', '-c', 'exit 6'])).code).toBe(6);
    expect((await ctx(['terminal', 'list', '-q'])).stdout.split('\n')).not.toContain('once');
  });

  it('goes on with what changes in the list', async () => {
    const child = spawn(process.execPath, [MAIN, 'terminal', 'list', '--watch', '--json'], { env });
    const update = ['terminal', 'update', 'long', '--title', 'seen', '--label', 'k=v'];
    for await (const line of createInterface({ input: child.stdout })) {
      const { snapshotEnd, changed } = JSON.parse(line);
      if (snapshotEnd) void ctx(update);
      if (changed?.terminal.title === 'seen') break;
    }
    child.kill();
    const status = await ctx(['terminal', 'status', 'long', '--json']);
    expect(JSON.parse(status.stdout)).toMatchObject({ title: 'seen', labels: { k: 'v' } });
  });

  it('connects by a context as by variables', async () => {
    const flags = [
      ...['--address', env.GRANTTY_ADDRESS ?? '', '--ca', env.GRANTTY_CA ?? ''],
      ...['--token-file', env.GRANTTY_TOKEN_FILE ?? ''],
    ];
    const bare = { GRANTTY_ADDRESS: '', GRANTTY_CA: '', GRANTTY_TOKEN_FILE: '', GRANTTY_OWNER: '' };
    expect(await ctx(['context', 'set', 'dev', ...flags], '', bare)).toMatchObject({ code: 0 });
    const status = await ctx(['terminal', 'status', 'long'], '', bare);
    expect(status).toMatchObject({ code: 0, stderr: '' });
    await rm(join(stateDir, '.config'), { recursive: true });
  });

  it('looks after a host, a server and a token, and fails where one does', async () => {
    const sound = await ctx(['doctor', '--state-dir', stateDir]);
    expect(sound.stdout).not.toMatch(/^fail/m);
    expect(sound.stdout).toMatch(/^ok +token/m);
    expect(sound).toMatchObject({ code: 0, stderr: '' });
    const unsound = await ctx(['doctor', '--json'], '', { GRANTTY_TOKEN: 'x.y.z' });
    const levels = unsound.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter(({ level }) => level === 'fail');
    expect(levels.map(({ check }) => check)).toContain('token');
    expect(unsound.code).toBe(1);
  });

  it('stops a terminal and tells what came of it', async () => {
    expect(await ctx(['terminal', 'stop', 'sleeper'])).toEqual({ code: 0, stdout: '', stderr: '' });
    expect((await ctx(['terminal', 'wait', 'sleeper'])).code).toBe(143);
  });
});

/** `ctx` on a terminal of its own, as a person has it. No child process may be started after this. */
class Person implements AsyncDisposable {
  readonly pty: Pty;
  output = '';
  #waiting: (() => void) | undefined;

  constructor(args: readonly string[], size = { cols: 90, rows: 25 }) {
    this.pty = openPty(
      { command: [process.execPath, MAIN, ...args], env, cwd: stateDir, size },
      (chunk) => {
        this.output += Buffer.from(chunk).toString('latin1');
        this.#waiting?.();
      },
    );
  }

  async type(text: string): Promise<void> {
    await this.pty.send(Buffer.from(text, 'latin1'), () => undefined);
  }

  /** Resolves when the text is on the screen, at `from` or later, with where it is. */
  async sees(text: string, from = 0): Promise<number> {
    while (!this.output.includes(text, from)) {
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
    }
    return this.output.indexOf(text, from);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.pty[Symbol.asyncDispose]();
  }
}

const RUN = ['terminal', 'run', 'p', '--session'];

describe('ctx on a terminal', () => {
  it('passes keys and control characters on, and gives the exit code', async () => {
    await using person = new Person([...RUN, 't1', '--', '/bin/sh']);
    await person.sees('# ');
    await person.type('stty size; echo now-$((40+2))\r');
    await person.sees('now-42');
    expect(person.output).toContain('25 90');
    await person.type('cat; echo rc-$?\r');
    await person.sees('cat; echo rc-$?\r\n');
    await person.type('x\r');
    await person.sees('x\r\nx\r\n');
    await person.type('\x03');
    // What is typed before the prompt is there again would be flushed with the interrupt.
    await person.sees('# ', await person.sees('^C'));
    await person.type('exit 9\r');
    expect(await person.pty.exit).toMatchObject({ exitCode: 9 });
  });

  it('follows the size of the window', async () => {
    const script = "trap 'stty size; exit 3' WINCH; echo ready; while :; do sleep 0.05; done";
    await using person = new Person([...RUN, 't5', '--', '/bin/sh', '-c', script]);
    await person.sees('ready');
    person.pty.resize({ cols: 70, rows: 20 });
    await person.sees('20 70');
    expect(await person.pty.exit).toMatchObject({ exitCode: 3 });
  });

  it('shows the bytes as they are, line feeds without a carriage return too', async () => {
    const script = "stty -opost; printf 'a\\nb\\n'";
    await using person = new Person([...RUN, 't6', '--', '/bin/sh', '-c', script]);
    await person.pty.exit;
    expect(person.output).toContain('a\nb\n');
  });

  it('detaches on the keys, gives the screen back, and leaves the terminal alone', async () => {
    {
      await using person = new Person([...RUN, 't2', '--', '/bin/sh']);
      await person.sees('# ');
      await person.type("printf '\\033[?1049h\\033[?25l'; echo up-$((1+1))\r");
      await person.sees('up-2');
      const from = person.output.length;
      await person.type('\x1d');
      expect(await person.pty.exit).toMatchObject({ exitCode: 0 });
      expect(person.output.slice(from)).toContain('\x1b[?1049l\x1b[?25h');
      expect(person.output).toContain('detached');
    }
    await using again = new Person([
      'terminal',
      'attach',
      'terminal-p-t2',
      '--detach-keys',
      'ctrl-p,q',
    ]);
    await again.sees('up-2');
    // An ordinary character now, which the line discipline takes back.
    await again.type('\x1d\x7fexit 5\r');
    expect(await again.pty.exit).toMatchObject({ exitCode: 5 });
  });

  it('gives the screen back when a signal ends it, and ends by that signal', async () => {
    await using person = new Person([...RUN, 't3', '--', '/bin/sh']);
    await person.sees('# ');
    await person.type("printf '\\033[?1000h'; echo up-$((1+1))\r");
    await person.sees('up-2');
    process.kill(person.pty.pid, 'SIGTERM');
    expect(await person.pty.exit).toMatchObject({ signal: 'SIGTERM' });
    expect(person.output).toContain('\x1b[?1000l');
  });

  it('says of a terminal that has ended that it has, and nothing of a size that it no longer has', async () => {
    {
      await using person = new Person([...RUN, 't7', '--', '/bin/sh', '-c', 'echo over; exit 6']);
      await person.pty.exit;
      expect(person.output).not.toContain('has ended before');
    }
    await using again = new Person(['terminal', 'attach', 'terminal-p-t7']);
    expect(await again.pty.exit).toMatchObject({ exitCode: 6 });
    expect(again.output).toContain('over');
    expect(again.output).toContain('its process has ended before; "ctx terminal start"');
    expect(again.output).not.toContain('refused');
  });

  it('answers no question of the history a second time', async () => {
    {
      await using person = new Person([...RUN, 't4', '--', '/bin/sh']);
      await person.sees('# ');
      await person.type("printf 'ask\\033[6n\\033[c'; echo up-$((1+1))\r");
      await person.sees('up-2');
      expect(person.output).toContain('ask\x1b[6n\x1b[c');
      await person.type('\x1d');
      await person.pty.exit;
    }
    await using again = new Person(['terminal', 'attach', 'terminal-p-t4']);
    await again.sees('up-2');
    expect(again.output).toContain('askup-2');
    await again.type('exit\r');
    await again.pty.exit;
  });
});
