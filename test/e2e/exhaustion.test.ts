/** No file descriptor left, for the server and for the supervisor; no PTY left on the host. */
import { execFile } from 'node:child_process';
import { access, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Client } from '../../src/client/connect.js';
import { CTX, type DevServer, startDevServer } from '../support/devServer.js';
import { owner } from '../support/registry.js';
import { onPath, skipAloud } from '../support/skipAloud.js';
import { watchAll } from '../support/streams.js';

const run = promisify(execFile);

const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: { code?: string; reason?: string; message?: string }) => error,
  );

const ref = (id: string) => ({ terminal: { id } });

const descriptors = async (pid: number) => (await readdir(`/proc/${pid}/fd`)).length;

/** The soft limit alone, which the process may have raised again. */
const limit = (pid: number, count: number | string) =>
  run('prlimit', [`--pid=${pid}`, `--nofile=${count}:`]);

/** Leaves it `spare` descriptors: no number below the limit is free but those. */
async function limitTo(pid: number, spare: number): Promise<void> {
  const taken = new Set(await readdir(`/proc/${pid}/fd`));
  let free = 0;
  for (let left = spare; taken.has(String(free)) || left-- > 0; ) free += 1;
  await limit(pid, free);
}

const softLimit = async (pid: number) => {
  const { stdout } = await run('prlimit', [
    `--pid=${pid}`,
    '--nofile',
    '--output=SOFT',
    '--noheadings',
  ]);
  return stdout.trim();
};

describe('what runs out', () => {
  let stateDir: string;

  beforeEach(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'grantty-exhaustion-'));
  });

  afterEach(async () => {
    await rm(stateDir, { recursive: true, force: true });
  });

  const supervisorPid = async () =>
    Number(await readFile(join(stateDir, 'supervisor.pid'), 'utf8'));

  const create = (client: Client, id: string) =>
    client.terminals.createTerminal({
      agent: 'a',
      id,
      command: ['sh', '-c', 'stty -echo; echo ready; while read line; do echo "got $line"; done'],
    });

  const isThere = (id: string) =>
    access(join(stateDir, 'home', owner, 'agent/a/session/default/terminal', id)).then(
      () => true,
      () => false,
    );

  /** It takes input and its output comes back. */
  async function answers(client: Client, id: string, word: string): Promise<void> {
    await client.terminals.write({ ...ref(id), data: Buffer.from(`${word}\n`) });
    await client.terminals.wait({
      ...ref(id),
      condition: { case: 'pattern', value: `got ${word}` },
    });
  }

  /** Until a call gets through again, as connections come back by themselves. */
  async function eventually(call: () => Promise<unknown>): Promise<void> {
    while ((await failureOf(call())) !== undefined) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** A terminal that is watched, one that is not; resolves when both run. */
  async function scene(server: DevServer) {
    const client = await server.client();
    await create(client, 'watched');
    await create(client, 'other');
    const watched = watchAll(client, ref('watched'), AbortSignal.timeout(200_000));
    await answers(client, 'watched', 'one');
    await answers(client, 'other', 'one');
    return { client, watched };
  }

  /** By a file of its record, or by the fork. */
  const nothingLeft = {
    code: expect.stringMatching(/^(UNAVAILABLE|RESOURCE_EXHAUSTED)$/),
    reason: expect.stringMatching(/^(SUPERVISOR_UNAVAILABLE|QUOTA_TERMINALS)$/),
    message: expect.stringMatching(/no file descriptor left|no terminal, process or file left/),
  };

  it('descriptors of the supervisor: a create is refused whole, terminals go on, and all is as before when there are some', async () => {
    if (!onPath('prlimit')) return skipAloud('prlimit is not installed');
    await using server = await startDevServer(stateDir);
    const { client, watched } = await scene(server);
    const pid = await supervisorPid();
    const before = await descriptors(pid);
    const soft = await softLimit(pid);
    // None is left, then one, two … and each time something else fails.
    for (let spare = 0; spare < 8; spare += 1) {
      await limitTo(pid, spare);
      const id = `refused-${spare}`;
      const failure = await failureOf(create(client, id));
      await limit(pid, soft);
      if (failure === undefined) {
        await client.terminals.kill(ref(id));
        continue;
      }
      expect(failure).toMatchObject(nothingLeft);
      // Not even of a name: whether its directory could be removed or not, it can be made.
      expect(await failureOf(client.terminals.getTerminal(ref(id)))).toMatchObject({
        reason: 'TERMINAL_NOT_FOUND',
      });
      await create(client, id);
      await client.terminals.kill(ref(id));
    }
    await limitTo(pid, 0);
    expect(await failureOf(create(client, 'refused'))).toMatchObject(nothingLeft);
    await client.terminals.write({ ...ref('watched'), data: Buffer.from('meanwhile\n') });
    await client.terminals.write({ ...ref('other'), data: Buffer.from('meanwhile\n') });
    await limit(pid, soft);
    await eventually(() => answers(client, 'other', 'two'));
    await create(client, 'refused');
    await answers(client, 'refused', 'three');
    await client.terminals.kill(ref('refused'));
    expect(await supervisorPid()).toBe(pid);
    expect(await descriptors(pid)).toBeLessThanOrEqual(before);
    await client.terminals.kill(ref('watched'));
    expect((await watched).output.toString()).toContain('got meanwhile');
  }, 240_000);

  it('descriptors of the server: who is connected is answered, others are sent away, and come in when there are some', async () => {
    if (!onPath('prlimit')) return skipAloud('prlimit is not installed');
    await using server = await startDevServer(stateDir);
    const { client, watched } = await scene(server);
    const { pid } = server;
    const before = await descriptors(pid);
    const soft = await softLimit(pid);
    await limitTo(pid, 0);
    const stranger = await server.client();
    expect(
      await failureOf(stranger.terminals.getTerminal(ref('other'), { timeoutMs: 10_000 })),
    ).toMatchObject({ code: expect.stringMatching(/UNAVAILABLE|DEADLINE_EXCEEDED/) });
    await client.terminals.getTerminal(ref('other'));
    await client.terminals.write({ ...ref('watched'), data: Buffer.from('meanwhile\n') });
    await create(client, 'meanwhile');
    // Its history would have to be read, and its output asked for.
    const unread = await failureOf(
      (async () => {
        for await (const _ of client.terminals.watch(ref('other'))) return;
      })(),
    );
    expect(unread).toMatchObject({ code: 'UNAVAILABLE' });
    await limit(pid, soft);
    await eventually(() => stranger.terminals.getTerminal(ref('other')));
    await answers(client, 'meanwhile', 'two');
    await answers(client, 'other', 'two');
    for (const id of ['watched', 'other', 'meanwhile']) await client.terminals.kill(ref(id));
    expect((await watched).output.toString()).toContain('got meanwhile');
    stranger.close();
    while ((await descriptors(pid)) > before) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }, 240_000);

  it('PTYs: a create is refused whole and says so, terminals go on, and there is one when one has ended', async () => {
    // A devpts of its own, as kernel.pty.max is the whole machine's.
    const max = 3;
    const script = [
      `mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,max=${max} devpts /dev/pts`,
      'mount --bind /dev/pts/ptmx /dev/ptmx',
      'exec "$@"',
    ].join(' && ');
    const wrapper = ['unshare', '--mount', 'sh', '-c', script, 'sh'];
    if (!(await run('unshare', [...wrapper.slice(1), 'true']).catch(() => undefined))) {
      return skipAloud('needs root and a mount namespace of its own');
    }
    await using server = await startDevServer(stateDir, [], [], CTX, wrapper);
    const client = await server.client();
    for (let count = 0; count < max; count += 1) {
      await create(client, `t${count}`);
      await answers(client, `t${count}`, 'zero');
    }
    expect(await failureOf(create(client, 'refused'))).toMatchObject({
      code: 'RESOURCE_EXHAUSTED',
      reason: 'QUOTA_TERMINALS',
      message: expect.stringContaining('the host has no terminal'),
    });
    expect(await isThere('refused')).toBe(false);
    await answers(client, 't0', 'one');
    await client.terminals.kill(ref('t1'));
    await eventually(() => create(client, 'refused'));
    await answers(client, 'refused', 'two');
  }, 240_000);
});
