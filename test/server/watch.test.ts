import { appendFile, readdir, readlink, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { GranttyError } from '../../src/core/errors.js';
import type { Name } from '../../src/core/names.js';
import { ClosingReason, Until } from '../../src/gen/public/grantty/v1/stream_pb.js';
import { EVENTS_FILE, resourceDir } from '../../src/store/paths.js';
import type { FakeTerminal } from '../support/fakeSupervisor.js';
import { detailsOf, Harness, terminals } from './harness.js';
import { eventsOf, kindsOf, range, seqsOf, textOf } from './streams.js';

const ref = { owner: '1000', id: 't1' };

describe('Watch', () => {
  let harness: Harness;
  let terminal: FakeTerminal;
  let token: string;
  beforeEach(async () => {
    harness = await Harness.start();
    terminal = await harness.supervisor.add({ id: 't1' as Name });
    token = await harness.token([{ actions: ['terminal.read'] }]);
  });
  afterEach(() => harness[Symbol.asyncDispose]());

  const watch = (request: object = {}, by = token) =>
    harness.serverStream(terminals.watch, { terminal: ref, ...request }, by);

  /** A watch that has got as far as its `started`. */
  async function started(request: object = {}, by = token) {
    const stream = watch(request, by);
    const first = await stream.next();
    expect(first?.event.case).toBe('started');
    return stream;
  }

  describe('from history to live', () => {
    it('delivers history, then live output, then the exit, and ends with OK', async () => {
      await terminal.print('one ', 'two ');
      const stream = await started();
      expect((await stream.next())?.event.case).toBe('resized');
      expect((await stream.next())?.event.case).toBe('output');
      expect((await stream.next())?.event.case).toBe('output');
      await terminal.print('three');
      await terminal.exit({ exitCode: 3 });
      const rest = await stream.rest();
      expect(kindsOf(rest)).toEqual(['output', 'exited', 'closing']);
      expect(eventsOf(rest, 'exited')[0]).toMatchObject({
        seq: 4n,
        instance: 1,
        status: { exitCode: 3 },
      });
      expect(eventsOf(rest, 'closing')[0]).toMatchObject({
        reason: ClosingReason.EXITED,
        lastSeq: 4n,
      });
      expect(stream.error).toBeUndefined();
    });

    it('passes over what is of a type that it does not know, at the end of the log too', async () => {
      await terminal.print('one');
      const events = join(resourceDir(harness.stateDir, terminal.record), EVENTS_FILE);
      await appendFile(events, '{"seq":2,"ts":1,"type":"pty.mark"}\n');
      terminal.nextSeq = 3;
      const position = { logEpoch: 0, afterSeq: 1n };
      for (const start of [undefined, { case: 'after', value: position }]) {
        const stream = watch({ follow: false, ...(start && { start }) });
        const all = await stream.rest();
        expect(textOf(all)).toBe(start ? '' : 'one');
        expect(eventsOf(all, 'closing')[0]).toMatchObject({ lastSeq: 2n });
        expect(stream.error).toBeUndefined();
      }
    });

    it('delivers all of a terminal that ended before anybody watched', async () => {
      await terminal.print('5bytes');
      await terminal.exit({ exitCode: 0 });
      const all = await watch().rest();
      expect(kindsOf(all)).toEqual(['started', 'resized', 'output', 'exited', 'closing']);
      expect(eventsOf(all, 'exited')[0]?.status?.exitCode).toBe(0);
    });

    it('wakes a waiting reader for an exit without output', async () => {
      const stream = await started();
      await terminal.exit();
      expect(kindsOf(await stream.rest())).toEqual(['resized', 'exited', 'closing']);
    });

    it('meets live output in the middle of a flood without gap or duplicate', async () => {
      const streams = [];
      for (let round = 0; round < 100; round += 1) {
        streams.push(watch());
        for (let i = 0; i < 2; i += 1) await terminal.print(`${round}.${i} `);
        await new Promise((resolve) => setImmediate(resolve));
      }
      await terminal.exit();
      for (const stream of streams) {
        const all = await stream.rest();
        expect(seqsOf(all)).toEqual(range(1, 201));
      }
    });

    it('gives every watcher of one terminal the output of a single subscription', async () => {
      const streams = await Promise.all(range(1, 20).map(() => started()));
      expect(harness.supervisor.effects.filter((name) => name === 'openOutput')).toHaveLength(1);
      expect(harness.server.load.watchedTerminals).toBe(1);
      await terminal.print('x');
      await terminal.exit();
      for (const stream of streams) expect(textOf(await stream.rest())).toBe('x');
    });
  });

  describe('where it starts', () => {
    beforeEach(() => terminal.print('aaaa', 'bbbb', 'cccc', 'dddd'));

    it.each([
      ['after 0', { case: 'after', value: { afterSeq: 0n } }, [1, 2, 3, 4]],
      ['after 2', { case: 'after', value: { afterSeq: 2n } }, [3, 4]],
      ['after the last', { case: 'after', value: { afterSeq: 4n } }, []],
      ['at the last byte', { case: 'tailBytes', value: 1n }, [4]],
      ['at the fourth last byte', { case: 'tailBytes', value: 4n }, [4]],
      ['at the fifth last byte', { case: 'tailBytes', value: 5n }, [3, 4]],
      ['at the sixteenth last byte', { case: 'tailBytes', value: 16n }, [1, 2, 3, 4]],
      ['at a tail longer than all', { case: 'tailBytes', value: 999n }, [1, 2, 3, 4]],
      ['at no tail', { case: 'tailBytes', value: 0n }, []],
      ['live', { case: 'live', value: true }, []],
    ])('starts %s', async (_where, start, before) => {
      const stream = await started({ start });
      await terminal.print('live');
      await terminal.exit();
      expect(seqsOf(await stream.rest())).toEqual([...before, 5, 6]);
    });

    it('tells the size of now first where output starts with what is yet to come', async () => {
      terminal.record = { ...terminal.record, size: { cols: 33, rows: 11 } };
      const stream = await started({ start: { case: 'live', value: true } });
      await terminal.print('live');
      expect((await stream.next())?.event.value).toMatchObject({
        size: { columns: 33, rows: 11 },
        fromSeq: 5n,
      });
      stream.call.cancel();
    });

    it('tells the size first where output starts with the first event', async () => {
      const stream = await started();
      const first = await stream.next();
      expect(first?.event.value).toMatchObject({ size: { columns: 80, rows: 24 }, fromSeq: 1n });
      stream.call.cancel();
    });

    it.each([
      ['live', { start: { case: 'live', value: false } }],
      ['follow', { start: { case: 'live', value: true }, follow: false }],
      ['until', { until: Until.UNSPECIFIED }],
      ['until', { until: 77 }],
      ['kind', { kind: 0 }],
      ['after_seq', { start: { case: 'after', value: { afterSeq: 5n } } }],
      ['after_seq', { start: { case: 'after', value: { afterSeq: 2n ** 63n } } }],
      ['tail_bytes', { start: { case: 'tailBytes', value: 2n ** 64n - 1n } }],
    ])('refuses a bad %s', async (field, request) => {
      const stream = watch(request);
      expect(await stream.rest()).toEqual([]);
      expect(detailsOf(stream.error).badRequest?.fieldViolations[0]?.field).toBe(field);
    });

    it('says where history begins to who wants what was trimmed', async () => {
      terminal.firstSeq = 3;
      const stream = watch({ start: { case: 'after', value: { afterSeq: 1n } } });
      await stream.rest();
      expect(stream.error?.code).toBe(status.OUT_OF_RANGE);
      expect(detailsOf(stream.error).info).toMatchObject({
        reason: 'SEQ_TRIMMED',
        metadata: { first_seq: '3' },
      });
    });

    it.each([
      [1, 3n, '2'],
      [2, 4n, '3'],
      [9, 1n, '0'],
    ])(
      'tells who saw more of epoch %i than a power cut left, and up to where it holds',
      async (logEpoch, afterSeq, lastSeq) => {
        const logRewinds = [
          { epoch: 1, lastSeq: 2 },
          { epoch: 2, lastSeq: 3 },
        ];
        terminal.record = { ...terminal.record, logEpoch: 3, logRewinds };
        const stream = watch({ start: { case: 'after', value: { afterSeq, logEpoch } } });
        expect(await stream.rest()).toEqual([]);
        expect(stream.error?.code).toBe(status.ABORTED);
        expect(detailsOf(stream.error).info).toMatchObject({
          reason: 'LOG_REWOUND',
          metadata: { last_seq: lastSeq, log_epoch: '3' },
        });
        // True of an epoch that has passed and of one that never was.
        expect(stream.error?.details).toContain(
          `of epoch ${logEpoch} nothing after seq ${lastSeq}`,
        );
        expect(stream.error?.details).toContain('or it never was');
      },
    );

    it('goes on under the present epoch for who saw no more than a power cut left', async () => {
      const logRewinds = [{ epoch: 1, lastSeq: 2 }];
      terminal.record = { ...terminal.record, logEpoch: 2, logRewinds };
      for (const logEpoch of [1, 2]) {
        const stream = watch({ start: { case: 'after', value: { afterSeq: 2n, logEpoch } } });
        const first = await stream.next();
        expect(first?.event).toMatchObject({ case: 'started', value: { logEpoch: 2 } });
        expect((await stream.next())?.event).toMatchObject({ case: 'output', value: { seq: 3n } });
        stream.call.cancel();
      }
    });
  });

  describe('where it ends', () => {
    it('stops at the end of history for who does not follow', async () => {
      await terminal.print('a', 'b');
      const stream = watch({ follow: false });
      const all = await stream.rest();
      expect(seqsOf(all)).toEqual([1, 2]);
      expect(eventsOf(all, 'closing')[0]).toMatchObject({
        reason: ClosingReason.END_OF_HISTORY,
        lastSeq: 2n,
      });
      expect(stream.error).toBeUndefined();
      expect(harness.supervisor.effects).not.toContain('openOutput');
    });

    it('ends at once for who has seen the last exit', async () => {
      await terminal.print('bye');
      await terminal.exit();
      const all = await watch({ start: { case: 'after', value: { afterSeq: 2n } } }).rest();
      expect(kindsOf(all)).toEqual(['started', 'closing']);
    });

    it('waits for the exit when the record says so a moment before the log does', async () => {
      await terminal.print('last words');
      let settle = () => {};
      terminal.settled = new Promise((resolve) => {
        settle = resolve;
      });
      terminal.record = { ...terminal.record, state: 'exited', exit: { exitCode: 0 } };
      const stream = await started();
      while (!harness.supervisor.effects.includes('exited')) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      await terminal.exit();
      settle();
      expect(seqsOf(await stream.rest())).toEqual([1, 2]);
    });

    it('goes on over an exit after which the terminal was started again', async () => {
      await terminal.print('first');
      await terminal.exit();
      await harness.supervisor.start({ owner: '1000' as Name, id: 't1' as Name }, {});
      const stream = await started();
      await terminal.print('second');
      await terminal.exit();
      const all = await stream.rest();
      expect(textOf(all)).toBe('firstsecond');
      expect(eventsOf(all, 'exited')).toHaveLength(2);
    });

    it('goes on for ever with UNTIL_NEVER, until the terminal is deleted', async () => {
      const stream = await started({ until: Until.NEVER });
      await terminal.exit();
      expect((await stream.next())?.event.case).toBe('resized');
      expect((await stream.next())?.event.case).toBe('exited');
      await harness.supervisor.remove({ owner: '1000' as Name, id: 't1' as Name });
      const rest = await stream.rest();
      expect(eventsOf(rest, 'closing')[0]?.reason).toBe(ClosingReason.DELETED);
      expect(stream.error?.code).toBe(status.NOT_FOUND);
      expect(detailsOf(stream.error).info?.reason).toBe('TERMINAL_NOT_FOUND');
    });

    it('ends as deleted when its history has gone a moment before the terminal has', async () => {
      await terminal.print('one ', 'two ');
      await terminal.exit();
      const dir = resourceDir(harness.stateDir, terminal.record);
      await rename(dir, `${dir}-gone`);
      const whole = watch();
      expect(eventsOf(await whole.rest(), 'closing')[0]?.reason).toBe(ClosingReason.DELETED);
      const tail = watch({ start: { case: 'tailBytes', value: 3n } });
      await tail.rest();
      for (const { error } of [whole, tail]) {
        expect(error?.code).toBe(status.NOT_FOUND);
        expect(detailsOf(error).info?.reason).toBe('TERMINAL_NOT_FOUND');
      }
    });

    it('says that the supervisor is lost when its output breaks off', async () => {
      const stream = await started();
      for (const queue of terminal.subscribers) {
        queue.fail(new GranttyError('SUPERVISOR_UNAVAILABLE', 'gone'));
      }
      const rest = await stream.rest();
      expect(eventsOf(rest, 'closing')[0]?.reason).toBe(ClosingReason.SUPERVISOR_UNAVAILABLE);
      expect(stream.error?.code).toBe(status.UNAVAILABLE);
    });

    it('says CANCELLED and DEADLINE_EXCEEDED, not OK', async () => {
      const cancelled = await started();
      cancelled.call.cancel();
      await cancelled.rest();
      expect(cancelled.error?.code).toBe(status.CANCELLED);

      const late = harness.serverStream(terminals.watch, { terminal: ref }, token, {
        deadline: Date.now() + 150,
      });
      await late.rest();
      expect(late.error?.code).toBe(status.DEADLINE_EXCEEDED);
    });

    it.each([
      ['a caller who covers every name', {}, status.NOT_FOUND],
      ['a caller who does not', { agent: 'coder' }, status.PERMISSION_DENIED],
    ])('refuses at once a terminal that does not exist, to %s', async (_who, resource, code) => {
      const by = await harness.token([{ actions: ['terminal.read'], resource }]);
      const stream = watch({ terminal: { owner: '1000', id: 'nothing' } }, by);
      await stream.rest();
      expect(stream.error?.code).toBe(code);
    });
  });

  describe('as time passes', () => {
    it('says that it lives after 15 s of silence, and not while it has something to say', async () => {
      const stream = await started();
      harness.clock.advance(10_000);
      await terminal.print('x');
      expect((await stream.next())?.event.case).toBe('resized');
      expect((await stream.next())?.event.case).toBe('output');
      harness.clock.advance(14_999);
      harness.clock.advance(1);
      expect((await stream.next())?.event.value).toMatchObject({ lastSeq: 1n });
      harness.clock.advance(15_000);
      expect((await stream.next())?.event.case).toBe('heartbeat');
      stream.call.cancel();
    });

    it('gives signs of life at the same pace though the clock is set back an hour', async () => {
      const stream = await started({}, await harness.token([{}], { ttl: 100 }));
      harness.clock.set(-3_600_000);
      let beats = 0;
      for (let seconds = 0; seconds < 60; seconds += 15) {
        harness.clock.advance(15_000);
        let event = await stream.next();
        while (event?.event.case !== 'heartbeat') event = await stream.next();
        beats += 1;
      }
      expect(beats).toBe(4);
      stream.call.cancel();
      harness.clock.set(3_600_000);
    });

    it('ends within 15 s when the clock is set past the end of the token', async () => {
      const stream = await started({}, await harness.token([{}], { ttl: 3_000 }));
      harness.clock.set(3_600_000);
      harness.clock.advance(15_000);
      const rest = await stream.rest();
      expect(eventsOf(rest, 'closing')[0]).toMatchObject({ reason: ClosingReason.TOKEN_EXPIRED });
      harness.clock.set(-3_600_000);
    });

    it('warns 30 s before the token ends, then ends with the last seq', async () => {
      await terminal.print('x');
      const stream = await started({}, await harness.token([{}], { ttl: 100 }));
      await stream.next();
      await stream.next();
      harness.clock.advance(69_999);
      harness.clock.advance(1);
      let warned = await stream.next();
      while (warned?.event.case === 'heartbeat') warned = await stream.next();
      expect(warned?.event.case).toBe('expiring');
      if (warned?.event.case === 'expiring' && warned.event.value.expiresAt) {
        expect(timestampMs(warned.event.value.expiresAt)).toBe(harness.clock.now() + 30_000);
      }
      harness.clock.advance(30_000);
      const rest = await stream.rest();
      expect(eventsOf(rest, 'closing')[0]).toMatchObject({
        reason: ClosingReason.TOKEN_EXPIRED,
        lastSeq: 1n,
      });
      expect(stream.error?.code).toBe(status.UNAUTHENTICATED);
      expect(detailsOf(stream.error).info).toMatchObject({
        reason: 'TOKEN_EXPIRED',
        metadata: { last_seq: '1' },
      });
    });

    it('goes on where it was for who comes back with a new token', async () => {
      await terminal.print('one', 'two');
      const stream = await started({}, await harness.token([{}], { ttl: 10 }));
      harness.clock.advance(10_000);
      const first = await stream.rest();
      const last = eventsOf(first, 'closing')[0]?.lastSeq ?? -1n;
      await terminal.print('three');
      await terminal.exit();
      const start = { case: 'after', value: { afterSeq: last } };
      const second = await watch({ start }, await harness.token()).rest();
      expect([...seqsOf(first), ...seqsOf(second)]).toEqual([1, 2, 3, 4]);
    });

    it('ends with the grant when that ends first, and goes on under another that covers it', async () => {
      const soon = Math.floor(harness.clock.now() / 1000) + 60;
      const brief = { actions: ['terminal.read'], constraints: { expires_at: soon } };
      const alone = await started({}, await harness.token([brief]));
      const both = await started({}, await harness.token([brief, { actions: ['terminal.read'] }]));
      harness.clock.advance(60_000);
      const rest = await alone.rest();
      expect(eventsOf(rest, 'closing')[0]?.reason).toBe(ClosingReason.GRANT_EXPIRED);
      expect(alone.error?.code).toBe(status.PERMISSION_DENIED);
      await terminal.print('x');
      await terminal.exit();
      expect(seqsOf(await both.rest())).toEqual([1, 2]);
    });

    it('ends a revoked stream at once when told to look, and before the next byte otherwise', async () => {
      const by = await harness.token([{}], { jti: 'bad' });
      const told = await started({}, by);
      harness.revoked.add('bad');
      harness.revocationEpoch += 1;
      harness.server.recheck();
      await told.rest();
      expect(told.error?.code).toBe(status.PERMISSION_DENIED);
      expect(detailsOf(told.error).info?.reason).toBe('GRANT_REVOKED');

      harness.revoked.delete('bad');
      harness.revocationEpoch += 1;
      const untold = await started({}, by);
      harness.revoked.add('bad');
      harness.revocationEpoch += 1;
      await terminal.print('not for you');
      const rest = await untold.rest();
      expect(textOf(rest)).toBe('');
      expect(eventsOf(rest, 'closing')[0]?.reason).toBe(ClosingReason.GRANT_REVOKED);
    });

    it('keeps a stream that a new policy permits and ends one that it forbids', async () => {
      const kept = await started();
      harness.policy = { hash: 'a', decide: () => ({ permit: true, policyIds: [], hash: 'a' }) };
      harness.server.recheck();
      await terminal.print('x');
      expect((await kept.next())?.event.case).toBe('resized');
      expect((await kept.next())?.event.case).toBe('output');
      harness.policy = { hash: 'b', decide: () => ({ permit: false, policyIds: [], hash: 'b' }) };
      harness.server.recheck();
      const rest = await kept.rest();
      expect(eventsOf(rest, 'closing')[0]?.reason).toBe(ClosingReason.POLICY_DENIED);
    });
  });

  it('tells the new size when it changes, once', async () => {
    await terminal.print('x');
    const stream = await started();
    await stream.next();
    await stream.next();
    terminal.setSize({ cols: 100, rows: 30 });
    expect((await stream.next())?.event.value).toMatchObject({
      size: { columns: 100, rows: 30 },
      fromSeq: 2n,
    });
    await terminal.append([
      {
        type: 'pty.output',
        seq: 2,
        timeMicros: 1,
        data: Buffer.from('y'),
        size: { cols: 100, rows: 30 },
      },
    ]);
    expect((await stream.next())?.event.case).toBe('output');
    stream.call.cancel();
  });

  it('leaves nothing behind after 200 cancelled watches', async () => {
    await terminal.print('x');
    const timers = harness.clock.timers;
    const files = await openFiles(harness.stateDir);
    for (let round = 0; round < 4; round += 1) {
      const client = harness.connect();
      const streams = range(1, 50).map(() =>
        harness.serverStream(terminals.watch, { terminal: ref }, token, { client }),
      );
      await Promise.all(streams.map((stream) => stream.next()));
      expect(harness.server.load.streams).toBe(50);
      for (const stream of streams) stream.call.cancel();
      await Promise.all(streams.map((stream) => stream.rest()));
      client.close();
      while (harness.server.load.streams > 0) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(harness.server.load).toMatchObject({ streams: 0, watchedTerminals: 0 });
    expect(terminal.subscribers.size).toBe(0);
    expect(harness.clock.timers).toBe(timers);
    expect(await openFiles(harness.stateDir)).toEqual(files);
  });

  it('holds a principal to its number of streams', async () => {
    await using few = await Harness.start({ limits: { maxStreamsPerPrincipal: 2 } });
    await few.supervisor.add({ id: 't1' as Name });
    const by = await few.token();
    const open = () => few.serverStream(terminals.watch, { terminal: ref }, by);
    const first = open();
    const second = open();
    await Promise.all([first.next(), second.next()]);
    const third = open();
    await third.rest();
    expect(third.error?.code).toBe(status.RESOURCE_EXHAUSTED);
    expect(detailsOf(third.error).info?.reason).toBe('QUOTA_STREAMS');
    first.call.cancel();
    await first.rest();
    while (few.server.load.streams > 1) await new Promise((resolve) => setImmediate(resolve));
    expect((await open().next())?.event.case).toBe('started');
  });
});

/** Paths of files below `dir` that this process has open, one for each descriptor. */
async function openFiles(dir: string): Promise<string[]> {
  const paths = (await readdir('/proc/self/fd')).map((fd) =>
    readlink(`/proc/self/fd/${fd}`).catch(() => ''),
  );
  return (await Promise.all(paths)).filter((path) => path.startsWith(dir)).sort();
}
