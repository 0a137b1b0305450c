import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { WatchEvent } from '../../src/client/watch.js';
import { TerminalState } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { CTX, startDevServer } from '../support/devServer.js';
import { transcriptOf, watchAll } from '../support/streams.js';

const run = promisify(execFile);

describe('a server whose supervisor is a process of its own', () => {
  let stateDir: string;

  beforeEach(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'grantty-detached-'));
  });

  afterEach(async () => {
    await run(process.execPath, [CTX, 'supervise', '--stop', '--state-dir', stateDir]);
    await rm(stateDir, { recursive: true });
  });

  const supervisorPid = async () =>
    Number(await readFile(join(stateDir, 'supervisor.pid'), 'utf8'));

  it('leaves terminals running when the server ends, and the next server has them', async () => {
    await using first = await startDevServer(stateDir);
    const pid = await supervisorPid();
    const client = await first.client();
    const terminal = { id: 'kept' };
    await client.terminals.createTerminal({ agent: 'a', ...terminal, command: ['cat'] });
    await client.terminals.write({ terminal, data: Buffer.from('before\n') });
    await client.terminals.wait({
      terminal,
      condition: { case: 'pattern', value: 'before\\r\\nbefore' },
    });
    client.close();
    expect(await first.end('SIGTERM')).toBe(0);

    await using second = await startDevServer(stateDir);
    expect(await supervisorPid()).toBe(pid);
    const again = await second.client();
    const { terminal: found } = await again.terminals.getTerminal({ terminal });
    expect(found).toMatchObject({ state: TerminalState.RUNNING, instance: 1 });
    await again.terminals.write({ terminal, data: Buffer.from('after\n') });
    await again.terminals.wait({
      terminal,
      condition: { case: 'pattern', value: 'after\\r\\nafter' },
    });
    await again.terminals.kill({ terminal });
    const { output } = await watchAll(again, { terminal });
    expect(output.toString()).toBe('before\r\nbefore\r\nafter\r\nafter\r\n');
  }, 120_000);

  it('gets another supervisor when that one was killed: one end record, no process left, and it serves on', async () => {
    await using server = await startDevServer(stateDir);
    const client = await server.client();
    const terminal = { id: 'lost' };
    const command = ['sh', '-c', 'setsid sleep 1000 & echo ready; exec sleep 1000'];
    await client.terminals.createTerminal({ agent: 'a', ...terminal, command });
    await client.terminals.wait({ terminal, condition: { case: 'pattern', value: 'ready' } });
    const killed = await supervisorPid();
    const events: WatchEvent[] = [];
    for await (const event of client.watch({ terminal })) {
      events.push(event);
      if (event.case === 'output') process.kill(killed, 'SIGKILL');
    }
    const seen = transcriptOf(events);
    expect(seen.output.toString()).toBe('ready\r\n');
    expect(seen.kinds.filter((kind) => kind === 'exited')).toHaveLength(1);
    expect(await supervisorPid()).not.toBe(killed);
    const found = await client.terminals.getTerminal({ terminal });
    expect(found.terminal?.state).toBe(TerminalState.ERROR);
    await client.terminals.startTerminal({ terminal });
    await client.terminals.kill({ terminal });
  }, 120_000);

  it('loses no byte when the server is killed in the middle of 20 floods', async () => {
    const bytes = 2_000_000;
    const floods = 20;
    await using first = await startDevServer(stateDir);
    const client = await first.client();
    const ids = Array.from({ length: floods }, (_, i) => `flood-${i}`);
    const script = `read go; stty -opost; yes 0123456789abcde | head -c ${bytes}`;
    for (const id of ids) {
      await client.terminals.createTerminal({ agent: 'a', id, command: ['sh', '-c', script] });
    }
    const watching = ids.map(async (id) => {
      const before = { hash: createHash('sha256'), seq: 0n };
      const stream = client.terminals.watch({ terminal: { id } });
      try {
        for await (const { event } of stream) {
          if (event.case !== 'output') continue;
          before.hash.update(event.value.data);
          before.seq = event.value.seq;
        }
      } catch {
        // The server was killed; what was seen counts.
      }
      return { id, ...before };
    });
    for (const id of ids)
      await client.terminals.write({ terminal: { id }, data: Buffer.from('\n') });
    expect(await first.end('SIGKILL')).toBe('SIGKILL');
    const seen = await Promise.all(watching);
    client.close();

    await using second = await startDevServer(stateDir);
    const again = await second.client();
    const expected = createHash('sha256')
      // First the echo of the line that starts it.
      .update(`\r\n${'0123456789abcde\n'.repeat(bytes / 16)}`)
      .digest('hex');
    for (const { id, hash, seq } of seen) {
      const start = { case: 'after', value: { afterSeq: seq } } as const;
      const rest = await watchAll(again, { terminal: { id }, start });
      expect(hash.update(rest.output).digest('hex')).toBe(expected);
      expect(rest.exitCode).toBe(0);
    }
  }, 180_000);
});
