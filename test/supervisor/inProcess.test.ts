import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TerminalEvent } from '../../src/core/event.js';
import { findTree } from '../../src/pty/processTree.js';
import { resourceDir } from '../../src/store/paths.js';
import { LogReader } from '../../src/store/reader/logReader.js';
import type { Supervisor, TerminalKey } from '../../src/supervisor/api.js';
import { createInProcessSupervisor } from '../../src/supervisor/inProcess.js';
import {
  createSpec,
  eventsUntilExit,
  lease,
  name,
  outputOf,
  owner,
  silentLog,
  startRegistry,
  type TestRegistry,
} from '../support/registry.js';

/** Resolves once the terminal has printed `text`, read from the log. */
async function printed(
  { supervisor, stateDir }: TestRegistry,
  key: TerminalKey,
  text: string,
): Promise<void> {
  const stop = new AbortController();
  const { items, nextSeq } = await supervisor.openOutput(key, stop.signal);
  let seen = outputOf(await logged(supervisor, stateDir, key, nextSeq - 1)).toString('latin1');
  if (!seen.includes(text)) {
    for await (const item of items) {
      if (item.kind === 'events') seen += outputOf(item.events).toString('latin1');
      if (seen.includes(text)) break;
    }
  }
  stop.abort();
}

async function logged(
  supervisor: Supervisor,
  stateDir: string,
  key: TerminalKey,
  through: number,
): Promise<TerminalEvent[]> {
  const snapshot = await supervisor.get(key);
  if (!snapshot) throw new Error('no such terminal');
  const reader = await LogReader.open(resourceDir(stateDir, snapshot.record));
  const events: TerminalEvent[] = [];
  try {
    for await (const batch of reader.read(1, through)) events.push(...batch);
  } finally {
    await reader.close();
  }
  return events;
}

const badInterpreter = join(tmpdir(), `grantty-bad-interpreter-${process.pid}`);
writeFileSync(badInterpreter, '#!/nowhere/at/all\n', { mode: 0o755 });
afterAll(() => rmSync(badInterpreter));

describe('the in-process supervisor', () => {
  it('keeps a title that is set while an instance starts', async () => {
    await using registry = await startRegistry();
    const { supervisor } = registry;
    const spec = createSpec(['true']);
    await supervisor.create(spec);
    await supervisor.exited(spec.tuple, new AbortController().signal);
    const starting = supervisor.start(spec.tuple, {});
    await new Promise(setImmediate);
    await supervisor.update(spec.tuple, { title: 'set meanwhile' });
    expect((await starting).record.title).toBe('set meanwhile');
    await supervisor.exited(spec.tuple, new AbortController().signal);
    expect((await supervisor.get(spec.tuple))?.record.title).toBe('set meanwhile');
  });

  it('removes what a create that was cut short has left, so that nothing of it remains', async () => {
    await using first = await startRegistry();
    const spec = createSpec(['true']);
    const dir = resourceDir(first.stateDir, spec.tuple);
    await mkdir(dir, { recursive: true, mode: 0o700 });
    await writeFile(join(dir, 'env.json'), '{}\n');
    await using second = await startRegistry({ stateDir: first.stateDir });
    expect(await second.supervisor.list()).toEqual([]);
    expect(existsSync(dir)).toBe(false);
  });

  let registry: TestRegistry;
  let supervisor: Supervisor;

  beforeAll(async () => {
    registry = await startRegistry();
    supervisor = registry.supervisor;
  });

  afterAll(async () => {
    await registry[Symbol.asyncDispose]();
  });

  it('creates, runs, and records output and exit, with the record as true as the log', async () => {
    const spec = createSpec(['sh', '-c', 'read line; echo "got $line"; exit 3']);
    const created = await supervisor.create(spec);
    expect(created.record).toMatchObject({
      state: 'running',
      instance: 1,
      socket: `test:${spec.tuple.id}`,
    });
    const ended = eventsUntilExit(supervisor, spec.tuple);
    await supervisor.write(spec.tuple, { data: Buffer.from('hello\n'), lease });
    const { events, exit } = await ended;
    expect(outputOf(events).toString()).toBe('hello\r\ngot hello\r\n');
    expect(exit.exitCode).toBe(3);
    const snapshot = await supervisor.get(spec.tuple);
    expect(snapshot?.record).toMatchObject({ state: 'exited', exit: { exitCode: 3 } });
    expect(snapshot?.record.socket).toBeUndefined();
    expect(snapshot?.nextSeq).toBe(exit.seq + 1);
    const log = await logged(supervisor, registry.stateDir, spec.tuple, exit.seq);
    expect(log.map(({ seq }) => seq)).toEqual(log.map((_, index) => index + 1));
    expect(outputOf(log).equals(outputOf(events))).toBe(true);
  });

  it('meets history and live output without gap or duplicate, attached in the middle of a flood, 100 times', async () => {
    // As quick as this machine starts a program: so who reads all of it a hundred times keeps up.
    const flood = 'while :; do yes 0123456789abcdef | head -c 16384; done';
    const spec = createSpec(['sh', '-c', `${flood} & read line; kill $!; wait`]);
    await supervisor.create(spec);
    const joins: Promise<Buffer>[] = [];
    const join = async () => {
      const { events, nextSeq } = await eventsUntilExit(supervisor, spec.tuple);
      const history = await logged(supervisor, registry.stateDir, spec.tuple, nextSeq - 1);
      const seqs = [...history, ...events].map(({ seq }) => seq);
      expect(seqs).toEqual(seqs.map((_, index) => index + 1));
      return outputOf([...history, ...events]);
    };
    const stop = new AbortController();
    const { items } = await supervisor.openOutput(spec.tuple, stop.signal);
    for await (const item of items) {
      if (item.kind === 'events') joins.push(join());
      if (joins.length === 100) break;
    }
    stop.abort();
    await supervisor.write(spec.tuple, { data: Buffer.from('\n'), lease });
    const last = (await supervisor.exited(spec.tuple, AbortSignal.timeout(20_000))).nextSeq - 1;
    const whole = outputOf(await logged(supervisor, registry.stateDir, spec.tuple, last));
    for (const joined of await Promise.all(joins)) expect(joined.equals(whole)).toBe(true);
  });

  it('refuses a taken id, and answers a repeated request with the terminal it made', async () => {
    const request = { key: 'k1', bodyHash: 'h1' };
    const spec = createSpec(['sleep', '1000'], { request });
    const [first, second] = await Promise.all([supervisor.create(spec), supervisor.create(spec)]);
    expect(second.record.uid).toBe(first.record.uid);
    await expect(
      supervisor.create({ ...spec, request: { key: 'k1', bodyHash: 'other' } }),
    ).rejects.toMatchObject({ reason: 'REQUEST_ID_REUSED' });
    const { request: _request, ...unmarked } = spec;
    await expect(supervisor.create(unmarked)).rejects.toMatchObject({ reason: 'TERMINAL_EXISTS' });
    await supervisor.kill(spec.tuple, { lease });
  });

  it.each([
    ['a missing command', ['/nowhere/at/all'], '/', 'COMMAND_NOT_FOUND'],
    ['a directory', ['/etc'], '/', 'COMMAND_NOT_FOUND'],
    ['a file that may not be executed', ['/etc/passwd'], '/', 'COMMAND_NOT_FOUND'],
    ['a program whose interpreter is missing', [badInterpreter], '/', 'COMMAND_NOT_FOUND'],
    ['a missing cwd', ['true'], '/nowhere/at/all', 'CWD_INVALID'],
  ])('leaves nothing behind when it cannot start %s', async (_, command, cwd, reason) => {
    const spec = createSpec(command, { cwd });
    await expect(supervisor.create(spec)).rejects.toMatchObject({ reason });
    expect(await supervisor.get(spec.tuple)).toBeUndefined();
    const parent = join(resourceDir(registry.stateDir, spec.tuple), '..');
    expect(await readdir(parent).catch(() => [])).not.toContain(spec.tuple.id);
    await supervisor.create({ ...spec, command: ['true'], cwd: '/' });
  });

  it('leaves no process and no file of a terminal that runs and cannot be put on record', async () => {
    const stateDir = await mkdtemp(join(tmpdir(), 'grantty-record-'));
    const spec = createSpec(['sleep', '1000']);
    const dir = resourceDir(stateDir, spec.tuple);
    let nonce = '';
    const supervisor = await createInProcessSupervisor({
      stateDir,
      stateDirId: 'test',
      isolation: { mode: 'shared-uid', owners: owner },
      version: 'test',
      log: silentLog,
      // Asked between the fork and the record of it: a folder takes the record's place.
      locator: () => {
        nonce = JSON.parse(readFileSync(join(dir, 'meta.json'), 'utf8')).started_by.nonce;
        rmSync(join(dir, 'meta.json'));
        mkdirSync(join(dir, 'meta.json'));
        return '';
      },
    });
    try {
      await expect(supervisor.create(spec)).rejects.toThrow();
      expect(await supervisor.get(spec.tuple)).toBeUndefined();
      expect(existsSync(dir)).toBe(false);
      const left = { pid: 0, startTime: 0, sessionId: 0, ttyDevice: 0, nonce };
      expect(nonce).not.toBe('');
      expect((await findTree(left)).filter(({ comm }) => comm === 'sleep')).toEqual([]);
    } finally {
      await supervisor[Symbol.asyncDispose]();
      await rm(stateDir, { recursive: true });
    }
  });

  it('names a shell and a directory that are there when none is asked for', async () => {
    const { command, cwd } = await supervisor.defaults(owner);
    const spec = createSpec([...command, '-c', 'pwd'], { cwd });
    await supervisor.create(spec);
    const { exit } = await supervisor
      .exited(spec.tuple, AbortSignal.timeout(5_000))
      .then(({ record }) => record);
    expect(exit).toEqual({ exitCode: 0 });
  });

  it('refuses an owner that it does not serve', async () => {
    const spec = createSpec(['true']);
    await expect(
      supervisor.create({ ...spec, tuple: { ...spec.tuple, owner: name('4242') } }),
    ).rejects.toMatchObject({ reason: 'FIELD_INVALID' });
  });

  it('interrupts the foreground program and leaves the shell', async () => {
    const spec = createSpec(['bash', '--norc', '-i']);
    await supervisor.create(spec);
    await supervisor.write(spec.tuple, {
      data: Buffer.from('sh -c \'echo be""gun; exec sleep 1000\'\n'),
      lease,
    });
    await printed(registry, spec.tuple, 'begun');
    await supervisor.signal(spec.tuple, 'SIGINT', lease);
    await supervisor.write(spec.tuple, { data: Buffer.from('echo al""ive\n'), lease });
    await printed(registry, spec.tuple, 'alive');
    await supervisor.kill(spec.tuple, { lease });
  });

  it('stops a tree, says what survived, and kills the rest', async () => {
    const spec = createSpec([
      'bash',
      '-c',
      'trap "" TERM HUP; (trap "" TERM HUP; while :; do sleep 1000; done) & echo ready; wait',
    ]);
    await supervisor.create(spec);
    await printed(registry, spec.tuple, 'ready');
    const stopped = await supervisor.stop(spec.tuple, { graceMs: 300, lease });
    expect(stopped.quiescent).toBe(false);
    expect(stopped.survivors.length).toBeGreaterThan(0);
    const killed = await supervisor.kill(spec.tuple, { lease });
    expect(killed).toMatchObject({
      quiescent: true,
      survivors: [],
      exit: { signal: 'SIGKILL', exitCode: 137 },
    });
  });

  it('stops a terminal whose program ends on SIGTERM within the grace', async () => {
    const spec = createSpec(['sleep', '1000']);
    await supervisor.create(spec);
    const stopped = await supervisor.stop(spec.tuple, { graceMs: 5_000, lease });
    expect(stopped).toMatchObject({ quiescent: true, exit: { signal: 'SIGTERM', exitCode: 143 } });
    expect(await supervisor.stop(spec.tuple, { graceMs: 5_000, lease })).toMatchObject({
      quiescent: true,
    });
  });

  it('refuses write, resize and signal after the exit, and lives', async () => {
    const spec = createSpec(['true']);
    await supervisor.create(spec);
    await supervisor.exited(spec.tuple, AbortSignal.timeout(5_000));
    const exited = { reason: 'TERMINAL_EXITED' };
    await expect(
      supervisor.write(spec.tuple, { data: Buffer.from('x'), lease }),
    ).rejects.toMatchObject(exited);
    await expect(supervisor.resize(spec.tuple, { cols: 1, rows: 1 }, lease)).rejects.toMatchObject(
      exited,
    );
    await expect(supervisor.signal(spec.tuple, 'SIGINT', lease)).rejects.toMatchObject(exited);
  });

  it('starts another instance whose events go on, and says which instance', async () => {
    const spec = createSpec(['sh', '-c', 'echo $0 $FOO', 'one'], { env: { FOO: 'bar' } });
    await supervisor.create(spec);
    const before = await supervisor.exited(spec.tuple, AbortSignal.timeout(5_000));
    await supervisor.start(spec.tuple, {});
    const after = await supervisor.exited(spec.tuple, AbortSignal.timeout(5_000));
    expect(after.record).toMatchObject({ instance: 2, state: 'exited' });
    const log = await logged(supervisor, registry.stateDir, spec.tuple, after.nextSeq - 1);
    expect(log.map(({ seq }) => seq)).toEqual(log.map((_, index) => index + 1));
    expect(outputOf(log.filter(({ seq }) => seq >= before.nextSeq)).toString()).toBe('one bar\r\n');
    expect(log.at(-1)).toMatchObject({ type: 'process.exit', instance: 2, exitCode: 0 });
  });

  it('counts an attachment’s taken input over its streams, and refuses an older stream', async () => {
    const spec = createSpec(['cat']);
    await supervisor.create(spec);
    const attachment = { kind: 'agent', subject: 's', principal: 'p' } as const;
    const first = await supervisor.attach(spec.tuple, attachment);
    expect(await first.send(Buffer.from('abc\n'), lease)).toBe(4);
    const { attachmentId } = first;
    const second = await supervisor.attach(spec.tuple, { ...attachment, attachmentId });
    expect(second).toMatchObject({ attachmentId, resumed: true, taken: 4 });
    await expect(first.send(Buffer.from('x'), lease)).rejects.toMatchObject({
      reason: 'FIELD_INVALID',
    });
    const stranger = await supervisor.attach(spec.tuple, {
      ...attachment,
      principal: 'q',
      attachmentId,
    });
    expect(stranger).toMatchObject({ resumed: false, taken: 0 });
    expect((await supervisor.get(spec.tuple))?.attachments).toHaveLength(2);
    for (const channel of [first, second, stranger]) await channel[Symbol.asyncDispose]();
    expect((await supervisor.get(spec.tuple))?.attachments).toHaveLength(0);
    await supervisor.kill(spec.tuple, { lease });
  });

  it('drops queued input of fenced leases, and only of those', async () => {
    // Raw and not reading: the kernel takes some 4 KiB, the rest stays queued.
    const spec = createSpec(['sh', '-c', 'stty raw -echo; echo ready; kill -STOP $$']);
    await supervisor.create(spec);
    await printed(registry, spec.tuple, 'ready');
    const channel = await supervisor.attach(spec.tuple, {
      kind: 'agent',
      subject: 's',
      principal: 'p',
    });
    const fenced = { ...lease, id: 'fenced' };
    const sends = Array.from({ length: 4 }, () => channel.send(Buffer.alloc(65_536, 97), fenced));
    const results = Promise.allSettled(sends);
    await supervisor.fence(['fenced']);
    for (const result of await results) {
      expect(result).toMatchObject({ status: 'rejected', reason: { reason: 'GRANT_REVOKED' } });
    }
    expect(channel.taken).toBeGreaterThan(0);
    expect(channel.taken).toBeLessThan(65_536);
    await expect(channel.send(Buffer.from('x'), fenced)).rejects.toMatchObject({
      reason: 'GRANT_REVOKED',
    });
    await supervisor.kill(spec.tuple, { lease });
  });

  it('tells followers of changes, and lets them resume', async () => {
    const stop = new AbortController();
    const spec = createSpec(['sh', '-c', 'read line']);
    const seen: string[] = [];
    let cursor: string | undefined;
    for await (const change of supervisor.changes(undefined, stop.signal)) {
      cursor = change.cursor;
      if (change.kind === 'snapshot') await supervisor.create(spec);
      if (change.kind !== 'changed' || change.terminal.record.id !== spec.tuple.id) continue;
      seen.push(change.terminal.record.state);
      if (seen.length === 1) {
        await supervisor.write(spec.tuple, { data: Buffer.from('\n'), lease });
      }
      if (change.terminal.record.state === 'exited') break;
    }
    expect(seen[0]).toBe('running');
    await supervisor.remove(spec.tuple);
    for await (const change of supervisor.changes(cursor, stop.signal)) {
      expect(change).toMatchObject({ kind: 'removed', tuple: { id: spec.tuple.id } });
      break;
    }
    expect(await supervisor.get(spec.tuple)).toBeUndefined();
  });

  it('lists in a fixed order and knows an incarnation by its uid', async () => {
    const spec = createSpec(['true']);
    const { record } = await supervisor.create(spec);
    const ids = (await supervisor.list(owner)).map(({ record: { id } }) => id);
    expect(ids).toEqual([...ids].sort());
    expect(await supervisor.get({ ...spec.tuple, uid: record.uid })).toBeDefined();
    expect(await supervisor.get({ ...spec.tuple, uid: 'another' })).toBeUndefined();
  });
});

describe('a state directory that outlives its supervisor', () => {
  it('has its terminals and their history in the next one, exited when the first was told to end', async () => {
    const stateDir = await mkdtemp(join(tmpdir(), 'grantty-state-'));
    try {
      const first = await startRegistry({ stateDir });
      const spec = createSpec(['sh', '-c', 'echo kept; sleep 1000']);
      await first.supervisor.create(spec);
      await printed(first, spec.tuple, 'kept');
      await first[Symbol.asyncDispose]();
      const second = await startRegistry({ stateDir });
      const snapshot = await second.supervisor.get(spec.tuple);
      expect(snapshot?.record).toMatchObject({ state: 'exited', exit: { signal: 'SIGTERM' } });
      expect(snapshot?.nextSeq).toBe(3);
      const dir = resourceDir(stateDir, spec.tuple);
      expect(await readFile(join(dir, 'state'), 'utf8')).toBe('exited\n');
      await second[Symbol.asyncDispose]();
    } finally {
      await rm(stateDir, { recursive: true });
    }
  });
});
