import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Client } from '../../src/client/connect.js';
import { TerminalState } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { CTX, type DevServer, startDevServer } from '../support/devServer.js';
import { watchAll } from '../support/streams.js';

const run = promisify(execFile);

const inProcess = ['--supervisor', 'in-process'];
const detached: string[] = [];
const terminal = { id: 'lost' };

/** Processes that carry `instance` in their environment. */
function processesOf(instance: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(instance);
      } catch {
        return false;
      }
    })
    .map(Number);
}

describe('kill -9 (case 29)', () => {
  let stateDir: string;
  let dir: string;

  beforeEach(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'grantty-killed-'));
    const owner = String(process.getuid?.() ?? 0);
    dir = join(stateDir, `home/${owner}/agent/a/session/default/terminal/lost`);
  });

  /** Those of a test that breaks off are ended too. */
  const begun: DevServer[] = [];

  afterEach(async () => {
    for (const server of begun.splice(0)) await server[Symbol.asyncDispose]();
    await run(process.execPath, [CTX, 'supervise', '--stop', '--state-dir', stateDir]);
    await rm(stateDir, { recursive: true });
  });

  const meta = async () => JSON.parse(await readFile(join(dir, 'meta.json'), 'utf8'));
  const killSupervisor = async () => {
    process.kill(Number(await readFile(join(stateDir, 'supervisor.pid'), 'utf8')), 'SIGKILL');
  };

  /** A running terminal, one of whose processes has left its session, and a watcher that resumes. */
  async function begin(flags: readonly string[]) {
    const server = await startDevServer(stateDir, flags);
    begun.push(server);
    const client = await server.client();
    const command = ['sh', '-c', 'setsid sleep 1000 & echo before; exec sleep 1000'];
    await client.terminals.createTerminal({ agent: 'a', ...terminal, command });
    const { ended } = await watched(client);
    return { server, client, ended };
  }

  const killings: [string, readonly string[], (server: DevServer) => Promise<void>][] = [
    [
      'of a server that owns the terminals itself',
      inProcess,
      async (server) => {
        await server.end('SIGKILL');
      },
    ],
    [
      'of the supervisor, then of the server',
      detached,
      async (server) => {
        await killSupervisor();
        await server.end('SIGKILL');
      },
    ],
    [
      'of the server, then of the supervisor',
      detached,
      async (server) => {
        await server.end('SIGKILL');
        await killSupervisor();
      },
    ],
    ['of the supervisor alone, under a server that goes on', detached, killSupervisor],
  ];

  it.each(killings)(
    '%s: exactly one end record, a true state, no process left, history whole',
    async (_, flags, kill) => {
      const { server: first, client: watcher, ended } = await begin(flags);
      const { nonce } = (await meta()).started_by;
      expect(processesOf(nonce).length).toBeGreaterThanOrEqual(2);
      await kill(first);
      const goesOn = await isAlive(first.pid);
      if (!goesOn) watcher.close();
      await using server = goesOn ? first : await startDevServer(stateDir, flags);
      const client = await server.client();
      expect(await ended).toBe(goesOn ? 'exited' : 'left');

      expect(processesOf(nonce)).toEqual([]);
      const found = await client.terminals.getTerminal({ terminal });
      expect(found.terminal?.state).toBe(TerminalState.ERROR);
      const seen = await watchAll(client, { terminal }, AbortSignal.timeout(60_000));
      expect(seen.output.toString()).toBe('before\r\n');
      expect(seen.kinds.filter((kind) => kind === 'exited')).toHaveLength(1);
      expect(seen.exitCode).toBeUndefined();
      const lines = (await readFile(join(dir, 'events.jsonl'), 'utf8')).trimEnd().split('\n');
      expect(lines.filter((line) => line.includes('"process.exit"'))).toHaveLength(1);
      expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ reason: 'supervisor-lost' });
      await client.terminals.startTerminal({ terminal });
      const restarted = await client.terminals.getTerminal({ terminal });
      expect(restarted.terminal).toMatchObject({ state: TerminalState.RUNNING, instance: 2 });
      await client.terminals.kill({ terminal });
    },
    120_000,
  );

  it('of the server alone ends nothing: no end record, the same processes, and the next server has them', async () => {
    const { server: first, client: watcher } = await begin(detached);
    const { started_by, pid } = await meta();
    const before = processesOf(started_by.nonce);
    await first.end('SIGKILL');
    watcher.close();
    await using second = await startDevServer(stateDir);
    const client = await second.client();
    const found = await client.terminals.getTerminal({ terminal });
    expect(found.terminal).toMatchObject({ state: TerminalState.RUNNING, instance: 1, pid });
    expect(processesOf(started_by.nonce)).toEqual(before);
    expect(await readFile(join(dir, 'events.jsonl'), 'utf8')).not.toContain('process.exit');
    await client.terminals.kill({ terminal });
  }, 120_000);

  it('of a supervisor that another server has just started: it gets another one again', async () => {
    const { server, ended } = await begin(detached);
    await using _server = server;
    const pid = async () => Number(await readFile(join(stateDir, 'supervisor.lock'), 'utf8'));
    const first = await pid();
    process.kill(first, 'SIGKILL');
    // Before it answers: nobody hears of this loss by a connection.
    let second = await pid();
    while (second === first || !(await isAlive(second))) {
      await new Promise(setImmediate);
      second = await pid();
    }
    process.kill(second, 'SIGKILL');
    expect(await ended).toBe('exited');
    expect([first, second]).not.toContain(await pid());
    const lines = (await readFile(join(dir, 'events.jsonl'), 'utf8')).trimEnd().split('\n');
    expect(lines.filter((line) => line.includes('"process.exit"'))).toHaveLength(1);
  }, 120_000);
});

/** Resolves when a watcher has seen output, from where on it resumes; `ended`: how it came to its end. */
async function watched(client: Client) {
  const opened = new AbortController();
  const follow = async () => {
    let last = 'left';
    for await (const event of client.watch({ terminal })) {
      if (event.case === 'output') opened.abort();
      if (event.case === 'exited') last = event.case;
    }
    return last;
  };
  const ended = follow();
  await Promise.race([ended, once(opened.signal, 'abort')]);
  return { ended };
}

async function isAlive(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '');
  // A zombie is waited for by its parent.
  return stat !== '' && !/\) Z /.test(stat);
}
