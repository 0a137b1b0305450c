// The main job from end to end, narrated: a server, a terminal, an agent, a watcher, and the record.
import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat, symlink } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify, styleText } from 'node:util';
import { AttachmentKind, connect, Until } from '../dist/index.js';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const ctxMain = join(root, 'dist/cli/main.js');
const run = promisify(execFile);

/** Milliseconds after which the demo has failed. */
const DEADLINE_MS = 60_000;

const say = (text) => console.log(`\n${styleText('bold', `# ${text}`)}`);
const show = (text) => {
  const trimmed = text.replace(/\s*$/, '');
  if (trimmed !== '') console.log(trimmed.replace(/^/gm, '    '));
};

/** As a shell would need it. */
const quoted = (word) =>
  /^[\w./:=,@-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

/** Runs `ctx`, prints the command and what it said. Resolves with its exit code and output. */
async function ctx(args, { env, quiet = false } = {}) {
  show(styleText('cyan', `$ ctx ${args.map(quoted).join(' ')}`));
  const child = spawn(process.execPath, [ctxMain, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const chunks = [];
  child.stdout.on('data', (chunk) => chunks.push(chunk));
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  const [code] = await once(child, 'close');
  const output = Buffer.concat(chunks);
  if (!quiet) show(`${output.toString()}${errors}`);
  if (code !== 0) show(styleText('dim', `(exit code ${code})`));
  return { code, output, errors };
}

function expect(truth, what) {
  if (!truth) throw new Error(`the demo did not go as promised: ${what}`);
}

/** A shell driven through an attachment, as an agent does: send a line, read until its mark comes back. */
class Agent {
  #text = '';
  #seen = 0;
  #wake = () => {};

  constructor(attachment) {
    this.attachment = attachment;
    this.exit = this.#read();
  }

  async #read() {
    for await (const event of this.attachment.events) {
      if (event.case === 'output') this.#text += Buffer.from(event.value.data).toString('latin1');
      if (event.case === 'exited') return event.value.status;
      this.#wake();
    }
    return undefined;
  }

  /** Types a command and resolves with what it printed and its status. */
  async shell(command) {
    show(styleText('cyan', `agent$ ${command}`));
    const mark = `__${Math.random().toString(36).slice(2)}__`;
    await this.type(`${command}; printf '${mark}%d\\n' $?\n`);
    // The echo of what was typed holds the mark too, but never a digit right behind it.
    const pattern = new RegExp(`([\\s\\S]*?)${mark}(\\d+)\\r\\n`);
    for (;;) {
      const found = pattern.exec(this.#text.slice(this.#seen));
      if (found) {
        this.#seen += found[0].length;
        // Up to the end of the echo of what was typed.
        const lines = found[1].split('\r\n');
        const echo = lines.findIndex((line) => line.includes(`printf '${mark}`));
        const printed = lines.slice(echo + 1).join('\n');
        show(printed);
        return { status: Number(found[2]), printed };
      }
      await this.#more();
    }
  }

  type(text) {
    return this.attachment.input(Buffer.from(text));
  }

  /** Resolves once that was printed; what comes up to it is passed over. */
  async until(text) {
    for (;;) {
      const at = this.#text.indexOf(text, this.#seen);
      if (at >= 0) {
        this.#seen = at + text.length;
        return;
      }
      await this.#more();
    }
  }

  #more() {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

/** Starts the server and resolves with its process and the settings it wrote for clients. */
async function serve(stateDir) {
  const args = [
    ...['serve', '--dev', '--state-dir', stateDir],
    ...['--listen', '127.0.0.1:0', '--supervisor', 'in-process'],
  ];
  show(styleText('cyan', `$ ctx ${args.map(quoted).join(' ')} &`));
  const server = spawn(process.execPath, [ctxMain, ...args], {
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  const ready = await Promise.race([
    readyLine(server),
    once(server, 'exit').then(([code]) => {
      throw new Error(`the server ended with ${code} before it was ready`);
    }),
  ]);
  show(ready);
  const file = await readFile(join(stateDir, 'dev/env'), 'utf8');
  const settings = {};
  for (const [, name, value] of file.matchAll(/^export (\w+)='?([^'\n]*)'?$/gm))
    settings[name] = value;
  return { server, settings };
}

/** Before it, and after, come lines of the log. */
async function readyLine(server) {
  let ready;
  for await (const line of createInterface({ input: server.stderr })) {
    if (!line.startsWith('ctx: serving on')) continue;
    ready = line;
    break;
  }
  // Nobody reads on, and its log must not fill the pipe.
  server.stderr.resume();
  return ready;
}

async function client(settings, token) {
  return connect({
    address: settings.GRANTTY_ADDRESS,
    ca: await readFile(settings.GRANTTY_CA),
    token: async () => (token ?? (await readFile(settings.GRANTTY_TOKEN_FILE, 'utf8'))).trim(),
  });
}

async function demo(work) {
  const stateDir = join(work, 'state');
  const checkout = join(work, 'checkout');
  const owner = String(userInfo().uid);

  say('A real git checkout to work in, and a server on an empty state directory');
  await run('git', ['clone', '--quiet', '--no-hardlinks', root, checkout]);
  await symlink(join(root, 'node_modules'), join(checkout, 'node_modules'));
  const { server, settings } = await serve(stateDir);
  const env = settings;
  try {
    say('Create a terminal: a login shell in the checkout, for the agent `coder`');
    const created = await ctx(
      [
        ...['terminal', 'create', 'coder', '--cwd', checkout],
        ...['--env', 'TERM=dumb', '--env', 'PAGER=cat', '--env', 'NO_COLOR=1'],
        ...['--', 'bash', '--norc'],
      ],
      { env },
    );
    expect(created.code === 0, 'a terminal was created');
    const id = created.output.toString().trim();
    const ref = { owner, id };

    say('Mint a narrower token: this one may read, and nothing else');
    const minted = await ctx(
      [
        'grant',
        'mint',
        '--key',
        join(stateDir, 'dev/issuer.jwk'),
        '--sub',
        'viewer',
        '--actions',
        'terminal.read',
        '--owner',
        owner,
        '--agent',
        'coder',
        '--session',
        '*',
        '--terminal',
        '*',
      ],
      { quiet: true },
    );
    expect(minted.code === 0, 'a token was minted');
    const readOnly = minted.output.toString().trim();
    show(`(a token of ${readOnly.length} bytes)`);

    say('A second client watches with it from the first byte on, while the agent works');
    const viewer = await client(settings, readOnly);
    const watched = [];
    const watching = (async () => {
      for await (const event of viewer.watch({ terminal: ref, until: Until.EXIT })) {
        if (event.case === 'output') watched.push(event.value.data);
      }
    })();

    say('The agent attaches and does real work');
    const agentClient = await client(settings);
    const attachment = await agentClient.attach({ terminal: ref, kind: AttachmentKind.AGENT });
    const agent = new Agent(attachment);
    await agent.shell('PS1=; stty size');
    await agent.shell('git log --oneline -3; git status --short --branch');
    const build = await agent.shell(
      'node_modules/.bin/tsc -p tsconfig.build.json --outDir out && ls out',
    );
    expect(build.status === 0, 'the agent built the project');
    const test = await agent.shell('node out/cli/main.js version');
    expect(test.status === 0, 'what the agent built runs');

    say('The read-only client tries to type: refused, and its stream goes on');
    const peek = await viewer.attach({
      terminal: ref,
      kind: AttachmentKind.HUMAN,
      start: { case: 'live', value: true },
    });
    await peek.input(Buffer.from('rm -rf .\n'));
    for await (const event of peek.events) {
      if (event.case !== 'denied') continue;
      show(`denied: ${event.value.requiredAction}: ${event.value.message}`);
      break;
    }
    peek.close();
    const typed = await ctx(['terminal', 'write', id, '--text', 'rm -rf .'], {
      env: { ...env, GRANTTY_TOKEN_FILE: '', GRANTTY_TOKEN: readOnly },
    });
    expect(typed.code === 77, 'a read-only token may not write');

    say('Resize: the program in the terminal sees the new size');
    await ctx(['terminal', 'resize', id, '120x40'], { env });
    const size = await agent.shell('stty size');
    expect(size.printed.includes('40 120'), 'the size changed');

    say('Signal: SIGINT ends the program in the foreground, the shell lives on');
    await agent.type('echo started; sleep 1000\n');
    await agent.until('started\r\n');
    await ctx(['terminal', 'signal', id, 'INT'], { env });
    const alive = await agent.shell('echo the shell still answers');
    expect(alive.status === 0, 'the shell lives');

    say('Stop: SIGTERM, then SIGHUP, to the whole tree; the record stays');
    await ctx(['terminal', 'stop', id], { env });
    await agent.exit;
    await watching;
    await ctx(['terminal', 'status', id], { env });
    const waited = await ctx(['terminal', 'wait', id, '--exit'], { env });
    expect(waited.code === 129, 'the exit code of a shell that was hung up');

    say('`run` is create, attach, and the exit code of the command');
    const ran = await ctx(
      ['terminal', 'run', 'coder', '--session', 'once', '--', 'sh', '-c', 'echo done; exit 3'],
      { env },
    );
    expect(ran.code === 3, 'the exit code of the command');

    say('What is on disk');
    const dir = join(stateDir, `home/${owner}/agent/coder/session/default/terminal/${id}`);
    show(dir.slice(stateDir.length + 1));
    for (const name of (await readdir(dir)).sort()) {
      const { mode, size: bytes } = await stat(join(dir, name));
      show(`${(mode & 0o777).toString(8)} ${String(bytes).padStart(8)} ${name}`);
    }
    show(await readFile(join(dir, 'meta.json'), 'utf8'));
    const events = (await readFile(join(dir, 'events.jsonl'), 'utf8')).trimEnd().split('\n');
    show(`${events.length} events; the last: ${events.at(-1)}`);

    say('Replay from seq 1: the same bytes that the watcher saw live');
    const replay = await ctx(['terminal', 'watch', id, '--after-seq', '0', '--no-follow'], {
      env,
      quiet: true,
    });
    const live = Buffer.concat(watched);
    const hash = (bytes) => createHash('sha256').update(bytes).digest('hex');
    show(`live    ${live.length} bytes, sha256 ${hash(live)}`);
    show(`replay  ${replay.output.length} bytes, sha256 ${hash(replay.output)}`);
    expect(hash(live) === hash(replay.output), 'live and replay are the same bytes');

    attachment.close();
    agentClient.close();
    viewer.close();
  } finally {
    server.kill('SIGTERM');
    if (server.exitCode === null) await once(server, 'exit');
  }
  say('The server has ended; everything above went over TLS on loopback');
}

const work = await mkdtemp(join(tmpdir(), 'grantty-demo-'));
const deadline = setTimeout(() => {
  console.error('the demo took too long');
  process.exit(1);
}, DEADLINE_MS);
try {
  await demo(work);
} finally {
  clearTimeout(deadline);
  await rm(work, { recursive: true, force: true });
}
