import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Client } from '../../src/client/connect.js';
import { owner } from '../support/registry.js';
import { startService, type TestService } from '../support/service.js';
import { onPath, skipAloud } from '../support/skipAloud.js';
import { watchAll } from '../support/streams.js';

/** The keys that the resource's specification shows, in its order, with the types it shows. */
const SPECIFIED = {
  id: 'string',
  agent: 'string',
  session: 'string',
  owner: 'string',
  cwd: 'string',
  command: 'object',
  state: 'string',
  socket: 'string',
  created_at: 'number',
} as const;

describe('the record on disk', () => {
  let service: TestService;
  let client: Client;
  let dir: string;
  let files: Record<string, string>;

  beforeAll(async () => {
    process.env.GRANTTY_TEST_SECRET = 'must not reach a child';
    service = await startService();
    client = service.client();
    dir = join(
      service.stateDir,
      `home/${owner}/agent/coder/session/default/terminal/terminal-coder-default`,
    );
  });

  afterAll(async () => {
    delete process.env.GRANTTY_TEST_SECRET;
    await service[Symbol.asyncDispose]();
  });

  function read(): Record<string, string> {
    return Object.fromEntries(
      readdirSync(dir).map((name) => [name, readFileSync(join(dir, name), 'utf8')]),
    );
  }

  it('is the specification’s while the process runs: path, keys, order, types, values', async () => {
    await client.terminals.createTerminal({
      agent: 'coder',
      cwd: '/tmp',
      command: ['sh', '-c', 'printf "cargo build\\n"; read go'],
      env: { LANG: 'C.UTF-8' },
    });
    files = read();
    const meta = JSON.parse(files['meta.json'] ?? '');
    expect(Object.keys(meta).slice(0, 9)).toEqual(Object.keys(SPECIFIED));
    for (const [key, type] of Object.entries(SPECIFIED)) expect(typeof meta[key]).toBe(type);
    expect(meta).toMatchObject({
      id: 'terminal-coder-default',
      agent: 'coder',
      session: 'default',
      owner,
      cwd: '/tmp',
      command: ['sh', '-c', 'printf "cargo build\\n"; read go'],
      state: 'running',
    });
    expect(Number.isInteger(meta.created_at)).toBe(true);
    expect(Math.abs(meta.created_at - Date.now() / 1000)).toBeLessThan(60);
    expect(files).toMatchObject({
      state: 'running\n',
      status: 'running\n',
      owner: `${owner}\n`,
      cwd: '/tmp\n',
    });
  });

  it('has events of the specification’s keys in its order, added ones after, and ends with the exit', async () => {
    const terminal = { id: 'terminal-coder-default' };
    await client.terminals.write({ terminal, data: Buffer.from('\n') });
    await watchAll(client, { terminal });
    files = read();
    const lines = (files['events.jsonl'] ?? '').split('\n');
    expect(lines.pop()).toBe('');
    const events = lines.map((line) => JSON.parse(line));
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    for (const event of events.slice(0, -1)) {
      expect(Object.keys(event).slice(0, 4)).toEqual(['seq', 'ts', 'type', 'data_b64']);
      expect(event.type).toBe('pty.output');
      expect(Buffer.from(event.data_b64, 'base64').toString('base64')).toBe(event.data_b64);
    }
    expect(Object.keys(events.at(-1)).slice(0, 4)).toEqual(['seq', 'ts', 'type', 'exit_code']);
    expect(events.at(-1)).toMatchObject({ type: 'process.exit', exit_code: 0 });
    expect(lines[0]?.startsWith('{"seq":1,"ts":')).toBe(true);
    const meta = JSON.parse(files['meta.json'] ?? '');
    expect(meta).toMatchObject({ state: 'exited', exit_code: 0 });
    expect(Object.hasOwn(meta, 'socket')).toBe(false);
    expect(files).toMatchObject({ state: 'exited\n', status: 'exited\n' });
  });

  it('is private, file by file and directory by directory, and its texts end in a newline', () => {
    for (const [name, text] of Object.entries(files)) {
      expect([name, statSync(join(dir, name)).mode & 0o7777]).toEqual([name, 0o600]);
      if (name !== 'events.idx') expect(text.endsWith('\n')).toBe(true);
    }
    for (let at = dir; at !== service.stateDir; at = dirname(at)) {
      expect([at, statSync(at).mode & 0o7777]).toEqual([at, 0o700]);
    }
    expect(statSync(service.stateDir).mode & 0o7777).toBe(0o700);
  });

  it('is read by jq, line by line', () => {
    if (!onPath('jq')) return skipAloud('jq is not installed');
    const seqs = execFileSync('jq', ['-e', '.seq'], { input: files['events.jsonl'] ?? '' });
    expect(seqs.toString().trim().split('\n').length).toBe(
      files['events.jsonl']?.trimEnd().split('\n').length,
    );
    expect(execFileSync('jq', ['-r', '.id', join(dir, 'meta.json')]).toString()).toBe(
      'terminal-coder-default\n',
    );
  });

  it('was made by a child that has its own terminal, our environment and nothing else of ours', async () => {
    const script = 'tty; stty size < /dev/tty; : < "$(tty)" && echo opened; echo END; env';
    const { terminal } = await client.terminals.createTerminal({
      agent: 'coder',
      session: 'env',
      command: ['sh', '-c', script],
      env: { LANG: 'C.UTF-8', MINE: 'yes' },
    });
    const { output } = await watchAll(client, { terminal: terminal?.ref ?? {} });
    const [seen = '', environment = ''] = output.toString().replaceAll('\r\n', '\n').split('END\n');
    expect(seen).toMatch(/^\/dev\/pts\/\d+\n24 80\nopened\n$/);
    const names = environment
      .trim()
      .split('\n')
      .map((line) => line.split('=')[0]);
    // PWD, OLDPWD, SHLVL and _ are the shell's own.
    const own = ['PWD', 'OLDPWD', 'SHLVL', '_'];
    expect(names.filter((name) => name && !own.includes(name)).sort()).toEqual(
      [
        'CTX_AGENT',
        'CTX_INSTANCE',
        'CTX_SESSION',
        'CTX_TERMINAL',
        'HOME',
        'LANG',
        'LOGNAME',
        'MINE',
        'PATH',
        'SHELL',
        'TERM',
        'USER',
      ].sort(),
    );
    expect(environment).not.toContain('must not reach a child');
    expect(environment).toContain('CTX_TERMINAL=terminal-coder-env\n');
  });
});
