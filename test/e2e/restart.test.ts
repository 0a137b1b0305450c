import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TerminalState } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { startDevServer } from '../support/devServer.js';
import { watchAll } from '../support/streams.js';

const inProcess = ['--supervisor', 'in-process'];

describe('a server whose supervisor is in its own process', () => {
  let stateDir: string;

  beforeEach(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'grantty-restart-'));
  });

  afterEach(() => rm(stateDir, { recursive: true }));

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

  it('after kill -9 of it: exactly one end record, a true state, no process left, history whole (case 29)', async () => {
    const first = await startDevServer(stateDir, inProcess);
    const client = await first.client();
    const terminal = { id: 'lost' };
    const script = 'setsid sleep 1000 & echo before; exec sleep 1000';
    await client.terminals.createTerminal({
      agent: 'a',
      ...terminal,
      command: ['sh', '-c', script],
    });
    await client.terminals.wait({ terminal, condition: { case: 'pattern', value: 'before' } });
    const owner = String(process.getuid?.() ?? 0);
    const dir = join(stateDir, `home/${owner}/agent/a/session/default/terminal/lost`);
    const { nonce } = JSON.parse(await readFile(join(dir, 'meta.json'), 'utf8')).started_by;
    expect(processesOf(nonce).length).toBeGreaterThanOrEqual(2);
    await first.end('SIGKILL');

    await using second = await startDevServer(stateDir, inProcess);
    expect(processesOf(nonce)).toEqual([]);
    const again = await second.client();
    const found = await again.terminals.getTerminal({ terminal });
    expect(found.terminal?.state).toBe(TerminalState.ERROR);
    const seen = await watchAll(again, { terminal });
    expect(seen.output.toString()).toBe('before\r\n');
    expect(seen.kinds.filter((kind) => kind === 'exited')).toHaveLength(1);
    expect(seen.exitCode).toBeUndefined();
    const lines = (await readFile(join(dir, 'events.jsonl'), 'utf8')).trimEnd().split('\n');
    expect(lines.filter((line) => line.includes('"process.exit"'))).toHaveLength(1);
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ reason: 'supervisor-lost' });
    await again.terminals.startTerminal({ terminal });
    const restarted = await again.terminals.getTerminal({ terminal });
    expect(restarted.terminal).toMatchObject({ state: TerminalState.RUNNING, instance: 2 });
    await again.terminals.kill({ terminal });
  });

  it('refuses a second server on the same state directory, and says who holds it', async () => {
    await using first = await startDevServer(stateDir, inProcess);
    await expect(startDevServer(stateDir, inProcess)).rejects.toThrow(String(first.pid));
  });

  it('ends in order on SIGTERM, and its terminals with it', async () => {
    const server = await startDevServer(stateDir, inProcess);
    const client = await server.client();
    await client.terminals.createTerminal({ agent: 'a', id: 'ended', command: ['sleep', '1000'] });
    const watching = watchAll(client, { terminal: { id: 'ended' } }).catch((error) => error);
    expect(await server.end('SIGTERM')).toBe(0);
    client.close();
    await watching;
    const owner = String(process.getuid?.() ?? 0);
    const dir = join(stateDir, `home/${owner}/agent/a/session/default/terminal/ended`);
    const meta = JSON.parse(await readFile(join(dir, 'meta.json'), 'utf8'));
    expect(meta).toMatchObject({ state: 'exited', signal: 'SIGTERM', exit_code: 143 });
  });
});
