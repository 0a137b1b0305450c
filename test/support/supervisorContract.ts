/** What every adapter of the `Supervisor` interface must do, told as tests over real terminals. */
import type { TerminalEvent } from '../../src/core/event.js';
import type { LiveItem, Supervisor, TerminalKey } from '../../src/supervisor/api.js';
import { createSpec, lease, name, outputOf, owner } from './registry.js';

export interface UnderTest extends AsyncDisposable {
  readonly supervisor: Supervisor;
}

const agent = { kind: 'agent', subject: 's', principal: 'p' } as const;

/**
 * Reads nothing after `ready`, so that the kernel accepts some 4 KiB and the rest stays queued; after
 * SIGUSR1 it copies input to output.
 */
export const deaf = [
  'sh',
  '-c',
  'stty raw -echo; trap "exec cat" USR1; sleep 1000 & echo ready; while :; do wait; done',
];

/** Creates a terminal and resolves when it has printed `text`. */
export async function createPrinting(
  supervisor: Supervisor,
  command: readonly string[],
  text: string,
): Promise<{ readonly key: TerminalKey; readonly pid: number }> {
  // It waits for a line, so that the output is open before anything is printed.
  const spec = createSpec(['sh', '-c', 'read go; exec "$@"', 'sh', ...command]);
  const { record } = await supervisor.create(spec);
  const stop = new AbortController();
  const { items } = await supervisor.openOutput(spec.tuple, stop.signal);
  await supervisor.write(spec.tuple, { data: Buffer.from('\n'), lease });
  await outputHolds(items, text);
  stop.abort();
  return { key: spec.tuple, pid: record.pid ?? 0 };
}

/** Reads on until the output has held `text`; answers all of it. */
export async function outputHolds(items: AsyncIterable<LiveItem>, text: string): Promise<string> {
  let seen = '';
  for await (const item of items) {
    if (item.kind === 'events') seen += outputOf(item.events).toString('latin1');
    if (seen.includes(text)) return seen;
  }
  throw new Error(`the output ended without ${text}`);
}

export function supervisorContract(adapter: string, start: () => Promise<UnderTest>): void {
  describe(`the supervisor, ${adapter}`, () => {
    let underTest: UnderTest;
    let supervisor: Supervisor;

    beforeAll(async () => {
      underTest = await start();
      supervisor = underTest.supervisor;
    });

    afterAll(async () => {
      await underTest[Symbol.asyncDispose]();
    });

    it('says who it is', async () => {
      expect(await supervisor.info()).toMatchObject({
        isolation: 'shared-uid',
        stateDirId: 'test',
        version: 'test',
        pid: process.pid,
      });
      expect((await supervisor.defaults(owner)).cwd).toMatch(/^\//);
    });

    it('keeps the whole record, and tells and lists it', async () => {
      const spec = createSpec(['sleep', '1000'], {
        title: 'A title ✓',
        labels: { team: 'a', empty: '' },
        name: 'shown',
        backend: 'shell',
        onExit: 'sweep',
        env: { LANG: 'C', EMPTY: '' },
        cwdUnder: ['/'],
        size: { cols: 132, rows: 50 },
        createdBy: { issuer: 'i', subject: 's', grants: ['root', 'child'] },
        request: { key: 'whole record', bodyHash: 'h' },
      });
      const created = await supervisor.create(spec);
      const { tuple, env, cwdUnder, ...recorded } = spec;
      expect(created.record).toMatchObject({ ...tuple, ...recorded, state: 'running' });
      expect(created.record.pid).toBeGreaterThan(0);
      expect(created.record.marks?.nonce).toMatch(/./);
      expect(await supervisor.get(tuple)).toEqual(created);
      expect(await supervisor.list(owner)).toContainEqual(created);
      expect(await supervisor.list(name('nobody'))).toEqual([]);
      expect(await supervisor.launchPlan(tuple)).toEqual({
        command: ['sleep', '1000'],
        cwd: '/',
        env,
      });
      const updated = await supervisor.update(tuple, { labels: {} });
      expect(updated.record).toMatchObject({ title: 'A title ✓', labels: {} });
      expect((await supervisor.update(tuple, { title: '' })).record.title).toBe('');
      await supervisor.kill(tuple, { lease });
    });

    it('says in its errors what was wrong', async () => {
      const spec = createSpec(['/nowhere/at/all']);
      await expect(supervisor.create(spec)).rejects.toMatchObject({
        name: 'GranttyError',
        reason: 'COMMAND_NOT_FOUND',
        message: expect.stringContaining('/nowhere/at/all'),
      });
      const stranger = { ...spec.tuple, owner: name('4242') };
      await expect(supervisor.create({ ...spec, tuple: stranger })).rejects.toMatchObject({
        reason: 'FIELD_INVALID',
        violations: [{ field: 'owner', description: expect.any(String) }],
      });
      expect(await supervisor.get(spec.tuple)).toBeUndefined();
      const unknown = { reason: 'TERMINAL_NOT_FOUND' };
      const { signal } = new AbortController();
      await expect(supervisor.launchPlan(spec.tuple)).rejects.toMatchObject(unknown);
      await expect(supervisor.exited(spec.tuple, signal)).rejects.toMatchObject(unknown);
      await expect(supervisor.openOutput(spec.tuple, signal)).rejects.toMatchObject(unknown);
      await expect(supervisor.attach(spec.tuple, agent)).rejects.toMatchObject(unknown);
    });

    it('gives output and exit in order, and the exit code 0 as 0', async () => {
      const spec = createSpec(['sh', '-c', 'read line; echo "got $line"; read line']);
      await supervisor.create(spec);
      const { items, nextSeq } = await supervisor.openOutput(
        spec.tuple,
        AbortSignal.timeout(9_000),
      );
      expect(nextSeq).toBe(1);
      const ended = untilExit(items);
      const { lastSeq } = await supervisor.write(spec.tuple, { data: Buffer.from('one\n'), lease });
      expect(lastSeq).toBe(0);
      await supervisor.write(spec.tuple, { data: Buffer.from('\n'), lease });
      const { events, exit } = await ended;
      expect(outputOf(events).toString()).toContain('got one\r\n');
      expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
      expect(events[0]).toMatchObject({ size: { cols: 80, rows: 24 } });
      expect(exit).toMatchObject({ exitCode: 0 });
      expect(exit.signal).toBeUndefined();
      const { record } = await supervisor.exited(spec.tuple, AbortSignal.timeout(5_000));
      expect(record).toMatchObject({ state: 'exited', exit: { exitCode: 0 } });
    });

    it('tells of a resize in its place in the output, and of a signal', async () => {
      const { key, pid } = await createPrinting(
        supervisor,
        ['sh', '-c', 'trap "echo caught" USR2; echo on; while :; do read l; done'],
        'on',
      );
      expect(await supervisor.foreground(key)).toMatchObject({
        processGroup: pid,
        shellInForeground: true,
      });
      const stop = new AbortController();
      const { items } = await supervisor.openOutput(key, stop.signal);
      const size = { cols: 100, rows: 30 };
      await supervisor.resize(key, size, lease);
      expect(await supervisor.signal(key, 'SIGUSR2', lease)).toEqual({ processGroup: pid });
      const kinds: string[] = [];
      for await (const item of items) {
        kinds.push(item.kind);
        if (item.kind === 'events') break;
        expect(item.size).toEqual(size);
      }
      expect(kinds).toEqual(['resized', 'events']);
      expect((await supervisor.get(key))?.record.size).toEqual(size);
      expect(await supervisor.kill(key, { lease })).toMatchObject({
        survivors: [],
        quiescent: true,
        exit: { exitCode: 137, signal: 'SIGKILL' },
      });
    });

    it('stops a terminal and says that nothing survived', async () => {
      const spec = createSpec(['sleep', '1000']);
      await supervisor.create(spec);
      expect(await supervisor.stop(spec.tuple, { graceMs: 5_000, lease })).toMatchObject({
        quiescent: true,
        exit: { exitCode: 143, signal: 'SIGTERM' },
      });
      await expect(
        supervisor
          .attach(spec.tuple, agent)
          .then((channel) => channel.send(Buffer.from('x'), lease)),
      ).rejects.toMatchObject({ reason: 'TERMINAL_EXITED' });
    });

    it('harms no terminal that gets the number of one whose survivors are waited for', async () => {
      const survivor = 'trap "" HUP TERM; setsid sleep 1000 </dev/null >/dev/null 2>&1 &';
      const { key } = await createPrinting(
        supervisor,
        ['sh', '-c', `${survivor} trap - HUP TERM; echo ready; read go`],
        'ready',
      );
      const stopped = supervisor.stop(key, { graceMs: 400, lease });
      await supervisor.exited(key, AbortSignal.timeout(5_000));
      const next = [createSpec(['cat']), createSpec(['cat'])];
      for (const spec of next) await supervisor.create(spec);
      expect(await stopped).toMatchObject({ quiescent: false, survivors: [{ comm: 'sleep' }] });
      for (const { tuple } of next) {
        expect((await supervisor.get(tuple))?.record.state).toBe('running');
      }
      const ends = [key, ...next.map(({ tuple }) => tuple)];
      for (const end of await Promise.all(ends.map((each) => supervisor.kill(each, { lease })))) {
        expect(end.quiescent).toBe(true);
      }
    });

    it('ends the output of a reader who stops, and holds nothing up for it', async () => {
      const flood = 40 * 1024 * 1024;
      const { key } = await createPrinting(
        supervisor,
        ['sh', '-c', `stty raw -echo; echo ready; read go; exec head -c ${flood} /dev/zero`],
        'ready',
      );
      const { signal } = new AbortController();
      const stopped = await supervisor.openOutput(key, signal);
      await supervisor.write(key, { data: Buffer.from('\n'), lease });
      const { nextSeq } = await supervisor.exited(key, AbortSignal.timeout(25_000));
      let seq = stopped.nextSeq;
      let bytes = 0;
      const late = async () => {
        for await (const item of stopped.items) {
          if (item.kind !== 'events') continue;
          for (const event of item.events) {
            expect(event.seq).toBe(seq);
            seq += 1;
          }
          bytes += outputOf(item.events).length;
        }
      };
      await expect(late()).rejects.toMatchObject({ reason: 'SUPERVISOR_UNAVAILABLE' });
      expect(bytes).toBeGreaterThan(8 * 1024 * 1024);
      expect(bytes).toBeLessThan(flood);
      expect(seq).toBeLessThan(nextSeq);
    });

    it('writes every chunk of an attachment whole and in order, and counts it', async () => {
      const { key } = await createPrinting(
        supervisor,
        ['sh', '-c', 'stty raw -echo; echo ready; exec head -c 262144'],
        'ready',
      );
      const { items } = await supervisor.openOutput(key, AbortSignal.timeout(10_000));
      const ended = untilExit(items);
      await using channel = await supervisor.attach(key, agent);
      expect(channel).toMatchObject({ resumed: false, taken: 0 });
      const sent = Buffer.from(Array.from({ length: 262_144 }, (_, index) => (index * 7) % 251));
      const taken: Promise<number>[] = [];
      for (let at = 0, size = 1; at < sent.length; at += size, size = ((size * 3) % 5_000) + 1) {
        taken.push(channel.send(sent.subarray(at, at + size), lease));
      }
      expect(await taken.at(-1)).toBe(sent.length);
      const counts = await Promise.all(taken);
      expect(counts).toEqual([...counts].sort((a, b) => a - b));
      expect(channel.taken).toBe(sent.length);
      expect(outputOf((await ended).events).equals(sent)).toBe(true);
    });

    it('counts an attachment over its streams, resumes it, and refuses an older stream', async () => {
      const spec = createSpec(['cat']);
      await supervisor.create(spec);
      const first = await supervisor.attach(spec.tuple, { ...agent, actor: 'a' });
      expect(await first.send(Buffer.from('abc\n'), lease)).toBe(4);
      const { attachmentId } = first;
      expect((await supervisor.get(spec.tuple))?.attachments).toMatchObject([
        { attachmentId, kind: 'agent', subject: 's', actor: 'a', mode: 'read-write' },
      ]);
      const second = await supervisor.attach(spec.tuple, { ...agent, attachmentId });
      expect(second).toMatchObject({ attachmentId, resumed: true, taken: 4 });
      await expect(first.send(Buffer.from('x'), lease)).rejects.toMatchObject({
        reason: 'FIELD_INVALID',
      });
      for (const channel of [first, second]) await channel[Symbol.asyncDispose]();
      expect((await supervisor.get(spec.tuple))?.attachments).toEqual([]);
      await supervisor.kill(spec.tuple, { lease });
    });

    it('bounds attachments, each of which works', async () => {
      const spec = createSpec(['cat']);
      await supervisor.create(spec);
      const channels = await Promise.all(
        Array.from({ length: 64 }, (_, index) =>
          supervisor.attach(spec.tuple, { ...agent, principal: `p${index % 4}` }),
        ),
      );
      await expect(
        supervisor.attach(spec.tuple, { ...agent, principal: 'other' }),
      ).rejects.toMatchObject({ reason: 'QUOTA_STREAMS' });
      const counts = channels.map((channel) => channel.send(Buffer.from('ab\n'), lease));
      expect(await Promise.all(counts)).toEqual(channels.map(() => 3));
      await Promise.all(channels.map((channel) => channel[Symbol.asyncDispose]()));
      expect((await supervisor.get(spec.tuple))?.attachments).toEqual([]);
      await supervisor.kill(spec.tuple, { lease });
    });

    it('bounds what waits for a program that reads nothing, and refuses the rest', async () => {
      const { key } = await createPrinting(supervisor, deaf, 'ready');
      const channel = await supervisor.attach(key, agent);
      const sends = Array.from({ length: 20 }, () => channel.send(Buffer.alloc(65_536, 97), lease));
      const first = await Promise.race(
        sends.map((send) => send.catch(({ reason }: { reason: string }) => reason)),
      );
      expect(first).toBe('INPUT_QUEUE_FULL');
      const killed = supervisor.kill(key, { lease });
      for (const result of await Promise.allSettled(sends)) expect(result.status).toBe('rejected');
      await killed;
    });

    it('drops queued input of fenced leases and refuses what comes later, of those only', async () => {
      const { key, pid } = await createPrinting(supervisor, deaf, 'ready');
      const channel = await supervisor.attach(key, agent);
      const fenced = { ...lease, id: `fenced ${key.id}` };
      const sends = Array.from({ length: 4 }, () => channel.send(Buffer.alloc(65_536, 97), fenced));
      const write = supervisor.write(key, { data: Buffer.alloc(65_536, 98), lease: fenced });
      const kept = channel.send(Buffer.alloc(1_000, 99), lease);
      const results = Promise.allSettled([...sends, write]);
      await supervisor.fence(['unknown', fenced.id]);
      const revoked = { reason: 'GRANT_REVOKED' };
      for (const result of await results) {
        expect(result).toMatchObject({ status: 'rejected', reason: revoked });
      }
      expect(channel.taken).toBeLessThan(65_536);
      await expect(channel.send(Buffer.from('x'), fenced)).rejects.toMatchObject(revoked);
      await expect(supervisor.resize(key, { cols: 1, rows: 1 }, fenced)).rejects.toMatchObject(
        revoked,
      );
      await expect(supervisor.signal(key, 'SIGINT', fenced)).rejects.toMatchObject(revoked);
      await expect(supervisor.kill(key, { lease: fenced })).rejects.toMatchObject(revoked);
      process.kill(pid, 'SIGUSR1');
      await kept;
      await supervisor.kill(key, { lease });
    });

    it('refuses what comes under a lease that is over', async () => {
      const spec = createSpec(['cat']);
      await supervisor.create(spec);
      const over = { id: 'over', notAfter: Date.now() - 1 };
      const expired = { reason: 'TOKEN_EXPIRED' };
      await using channel = await supervisor.attach(spec.tuple, agent);
      await expect(channel.send(Buffer.from('x'), over)).rejects.toMatchObject(expired);
      await expect(
        supervisor.write(spec.tuple, { data: Buffer.from('x'), lease: over }),
      ).rejects.toMatchObject(expired);
      await supervisor.kill(spec.tuple, { lease });
    });

    it('has one effect for a repeated request, and starts another instance', async () => {
      const request = (key: string, bodyHash = 'h') => ({ key: `contract ${key}`, bodyHash });
      const spec = createSpec(['cat'], { request: request('create') });
      const [first, again] = await Promise.all([supervisor.create(spec), supervisor.create(spec)]);
      expect(again.record.uid).toBe(first.record.uid);
      await expect(
        supervisor.create({ ...spec, request: request('create', 'other') }),
      ).rejects.toMatchObject({ reason: 'REQUEST_ID_REUSED' });
      const write = { data: Buffer.from('once\n'), lease, request: request('write') };
      const results = [
        await supervisor.write(spec.tuple, write),
        await supervisor.write(spec.tuple, write),
      ];
      expect(results[1]).toEqual(results[0]);
      await supervisor.kill(spec.tuple, { lease });
      await expect(supervisor.start({ ...spec.tuple, uid: 'other' }, {})).rejects.toMatchObject({
        reason: 'TERMINAL_NOT_FOUND',
      });
      const size = { cols: 90, rows: 20 };
      const createdBy = { issuer: 'i', subject: 'starter', grants: ['g', 'h'], actors: ['a'] };
      const started = await supervisor.start(spec.tuple, { size, cwdUnder: ['/'], createdBy });
      expect(started.record).toMatchObject({ instance: 2, state: 'running', size, createdBy });
      await supervisor.kill(spec.tuple, { lease });
    });

    it('tells of changes after a snapshot, resumes by cursor, and ends by the signal', async () => {
      const stop = new AbortController();
      const spec = createSpec(['sh', '-c', 'read line']);
      const seen: string[] = [];
      let cursor = '';
      for await (const change of supervisor.changes(undefined, stop.signal)) {
        cursor = change.cursor;
        if (change.kind === 'snapshot') {
          const uids = (await supervisor.list()).map(({ record }) => record.uid);
          expect(change.terminals.map(({ record }) => record.uid)).toEqual(uids);
          await supervisor.create(spec);
        }
        if (change.kind !== 'changed' || change.terminal.record.id !== spec.tuple.id) continue;
        seen.push(change.terminal.record.state);
        if (seen.length === 1) {
          await supervisor.write(spec.tuple, { data: Buffer.from('\n'), lease });
        }
        if (change.terminal.record.state === 'exited') break;
      }
      expect(seen[0]).toBe('running');
      const { record } = await supervisor.exited(spec.tuple, stop.signal);
      await supervisor.remove(spec.tuple);
      const kinds: string[] = [];
      for await (const change of supervisor.changes(cursor, stop.signal)) {
        kinds.push(change.kind);
        if (change.kind !== 'removed') continue;
        expect(change).toMatchObject({ tuple: spec.tuple, uid: record.uid });
        stop.abort();
      }
      expect(kinds).not.toContain('snapshot');
    });

    it('ends waits and outputs by their signal, and outputs of what is removed', async () => {
      const spec = createSpec(['sleep', '1000']);
      await supervisor.create(spec);
      const stop = new AbortController();
      const reason = new Error('enough');
      const wait = supervisor.exited(spec.tuple, stop.signal);
      const { items } = await supervisor.openOutput(spec.tuple, stop.signal);
      const ended = eventsOf(items);
      stop.abort(reason);
      await expect(wait).rejects.toBe(reason);
      await expect(supervisor.exited(spec.tuple, stop.signal)).rejects.toBe(reason);
      await ended;
      const { signal } = new AbortController();
      const last = eventsOf((await supervisor.openOutput(spec.tuple, signal)).items);
      await supervisor.kill(spec.tuple, { lease });
      await supervisor.remove(spec.tuple);
      expect(await last).toBe(1);
    });
  });
}

async function untilExit(items: AsyncIterable<LiveItem>) {
  const events: TerminalEvent[] = [];
  for await (const item of items) {
    if (item.kind === 'events') events.push(...item.events);
    const exit = events.at(-1);
    if (exit?.type === 'process.exit') return { events, exit };
  }
  throw new Error('the output ended without an exit');
}

/** Number of events up to the end of the output. */
async function eventsOf(items: AsyncIterable<LiveItem>): Promise<number> {
  let events = 0;
  for await (const item of items) if (item.kind === 'events') events += item.events.length;
  return events;
}
