/** A disk that turns read-only, under a running service and before one starts. */
import { execFile } from 'node:child_process';
import { chmod, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Client } from '../../src/client/connect.js';
import { PauseReason, TerminalState } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { CTX, startDevServer } from '../support/devServer.js';
import { type FailingDisk, failingDisk } from '../support/failingDisk.js';
import { owner } from '../support/registry.js';
import { skipAloud } from '../support/skipAloud.js';
import { smallDisk } from '../support/smallDisk.js';
import { watchAll } from '../support/streams.js';

const run = promisify(execFile);
const ctx = (...args: string[]) => run(process.execPath, [CTX, ...args]);

const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: { code?: string; reason?: string; message?: string }) => error,
  );

const ref = (id: string) => ({ terminal: { id } });

/** Two terminals: one answers what is typed, one sleeps. */
async function start(client: Client): Promise<void> {
  const create = (id: string, script: string) =>
    client.terminals.createTerminal({ agent: 'a', id, command: ['bash', '-c', script] });
  await create('typed', 'stty -echo; echo ready; while read line; do echo "got $line"; done');
  await create('sleeps', 'exec sleep 1000');
  await client.terminals.wait({
    ...ref('typed'),
    condition: { case: 'pattern', value: 'ready' },
  });
}

/** Mended and started again: what lived has ended, once, on record; and the trail is sound. */
async function startsAgain(disk: FailingDisk, stateDir: string): Promise<void> {
  await disk.repair();
  await using again = await startDevServer(stateDir);
  const client = await again.client();
  for (const id of ['typed', 'sleeps']) {
    const { terminal } = await client.terminals.getTerminal(ref(id));
    expect(terminal?.state).not.toBe(TerminalState.RUNNING);
    const { kinds } = await watchAll(client, ref(id));
    expect(kinds.filter((kind) => kind === 'exited')).toHaveLength(1);
  }
  const { output } = await watchAll(client, ref('typed'));
  expect(output.toString()).toContain('ready\r\n');
  await client.terminals.startTerminal(ref('typed'));
  expect((await ctx('audit', 'verify', '--state-dir', stateDir)).stdout).toContain('sound');
}

const readOnly = { message: expect.stringContaining('read-only') };

describe('a disk that turns read-only', () => {
  it('with the audit trail on it: nothing is done, kill included, and the operator can end the terminals and start again', async () => {
    await using disk = await failingDisk();
    if (disk === undefined) return skipAloud('needs root, mount(8), loop devices and ext4');
    const stateDir = join(disk.path, 'state');
    const server = await startDevServer(stateDir);
    try {
      const client = await server.client();
      await start(client);
      const { terminal } = await client.terminals.getTerminal(ref('sleeps'));
      await disk.fail();
      const refused = { code: 'UNAVAILABLE', reason: 'AUDIT_UNAVAILABLE', ...readOnly };
      const calls = [
        client.terminals.createTerminal({ agent: 'a', id: 'new', command: ['true'] }),
        client.terminals.write({ ...ref('typed'), data: Buffer.from('lost\n') }),
        client.terminals.getTerminal(ref('typed')),
        client.terminals.kill(ref('sleeps')),
      ];
      for (const call of calls) expect(await failureOf(call)).toMatchObject(refused);
      const meta = join(
        stateDir,
        'home',
        owner,
        'agent/a/session/default/terminal/sleeps/meta.json',
      );
      const { pid } = JSON.parse(await readFile(meta, 'utf8'));
      process.kill(pid, 0);
      expect(terminal?.state).toBe(TerminalState.RUNNING);
      // In force in this server, and the caller is told that it could not be kept.
      expect(await failureOf(client.grants.revoke({}))).toMatchObject(refused);
      expect(await failureOf(client.grants.introspect({}))).toMatchObject({
        reason: 'GRANT_REVOKED',
      });
      client.close();
      expect(await server.end('SIGTERM')).toBe(0);
      expect((await ctx('supervise', '--stop', '--state-dir', stateDir)).stderr).toContain('ended');
      expect(() => process.kill(pid, 0)).toThrow('ESRCH');
      for (const command of ['serve', 'supervise']) {
        const failure = failureOf(ctx(command, '--dev', '--state-dir', stateDir));
        expect(await failure).toMatchObject({
          code: 1,
          stderr: expect.stringMatching(/read-only file system: .*mount it for writing/),
        });
      }
      await startsAgain(disk, stateDir);
    } finally {
      await server[Symbol.asyncDispose]();
    }
  }, 300_000);

  it('with the audit trail elsewhere: terminals hold their output back and say so, stop and kill get through', async () => {
    await using disk = await failingDisk();
    await using audit = await smallDisk(20 * 1024 * 1024);
    if (disk === undefined || audit === undefined) {
      return skipAloud('needs root, mount(8), loop devices and ext4');
    }
    const stateDir = join(disk.path, 'state');
    const trail = join(stateDir, 'audit');
    await mkdir(trail, { recursive: true, mode: 0o700 });
    await chmod(stateDir, 0o700);
    await run('mount', ['--bind', audit.path, trail]);
    const server = await startDevServer(stateDir);
    try {
      const client = await server.client();
      await start(client);
      await disk.fail();
      await client.terminals.write({ ...ref('typed'), data: Buffer.from('x\n') });
      const typed = async () => (await client.terminals.getTerminal(ref('typed'))).terminal;
      while ((await typed())?.paused !== PauseReason.LOG_UNWRITABLE) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      const create = client.terminals.createTerminal({ agent: 'a', id: 'new', command: ['true'] });
      expect(await failureOf(create)).toMatchObject({ code: 'UNAVAILABLE', ...readOnly });
      expect(await client.terminals.kill(ref('sleeps'))).toMatchObject({ survivors: [] });
      // What was written can be read.
      const { output } = await watchAll(client, { ...ref('typed'), follow: false });
      expect(output.toString()).toBe('ready\r\n');
      client.close();
      expect(await server.end('SIGTERM')).toBe(0);
      await ctx('supervise', '--stop', '--state-dir', stateDir);
      await run('umount', [trail]);
      await disk.repair();
      await run('mount', ['--bind', audit.path, trail]);
      await using again = await startDevServer(stateDir);
      const after = await again.client();
      const { kinds } = await watchAll(after, ref('sleeps'));
      expect(kinds.filter((kind) => kind === 'exited')).toHaveLength(1);
      expect((await ctx('audit', 'verify', '--state-dir', stateDir)).stdout).toContain('sound');
    } finally {
      await server[Symbol.asyncDispose]();
      await run('umount', ['-l', trail]).catch(() => {});
    }
  }, 300_000);
});
