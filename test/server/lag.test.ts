/** Watchers that do not keep up: the log is their buffer. */
import { createHash } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { GranttyError } from '../../src/core/errors.js';
import type { Name } from '../../src/core/names.js';
import { ClosingReason } from '../../src/gen/public/grantty/v1/stream_pb.js';
import { Hub, type LiveSink } from '../../src/server/hub.js';
import { type EncodedEvent, encodeEvent } from '../../src/server/streamEvents.js';
import { temporaryDir } from '../store/temporaryDir.js';
import { FakeSupervisor, type FakeTerminal } from '../support/fakeSupervisor.js';
import { Harness, type Incoming, terminals } from './harness.js';
import { eventsOf, range, seqsOf } from './streams.js';

const ref = { owner: '1000', id: 't1' };
const CHUNK = 64 * 1024;

/** Deterministic bytes that no compression or cache could make up. */
function chunk(index: number): Buffer {
  const block = createHash('sha512').update(String(index)).digest();
  return Buffer.alloc(CHUNK, block);
}

/** Reads on to the end, hashing outputs as they come. */
async function readAll(stream: Incoming<never>) {
  const hash = createHash('sha256');
  const seqs: number[] = [];
  for (let message = await stream.next(); message; message = await stream.next()) {
    for (const { data } of eventsOf([message], 'output')) hash.update(data);
    seqs.push(...seqsOf([message]));
  }
  return { hash: hash.digest('hex'), seqs };
}

/** Bytes that something holds on to. */
function memoryInUse(): number {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  // What the first finds dead is freed beside it; the second waits for that.
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

describe('a watcher that lags', () => {
  let harness: Harness;
  let terminal: FakeTerminal;
  let token: string;
  beforeEach(async () => {
    harness = await Harness.start();
    terminal = await harness.supervisor.add({ id: 't1' as Name });
    token = await harness.token([{ actions: ['terminal.read'] }]);
  });
  afterEach(() => harness[Symbol.asyncDispose]());

  const watch = () =>
    harness.serverStream(terminals.watch, { terminal: ref }, token, { client: harness.connect() });

  it('loses nothing, costs a constant, and delays neither another watcher nor a call', async () => {
    const chunks = 768; // 48 MiB
    const expected = createHash('sha256');
    const stopped = watch();
    const reading = watch();
    await Promise.all([stopped.next(), reading.next()]);
    stopped.call.pause();
    const readByOther = readAll(reading as Incoming<never>);

    const before = memoryInUse();
    for (let index = 0; index < chunks; index += 1) {
      const data = chunk(index);
      expected.update(data);
      await terminal.print(data);
    }
    await terminal.exit();
    const whole = expected.digest('hex');
    const other = await readByOther;
    expect(other.seqs).toEqual(range(1, chunks + 1));
    expect(other.hash).toBe(whole);

    // The stopped one has not read, the call is answered, and no queue has grown by what it missed.
    await harness.unary(terminals.getTerminal, { terminal: ref }, token);
    expect(memoryInUse() - before).toBeLessThan((chunks * CHUNK) / 2);

    stopped.call.resume();
    const late = await readAll(stopped as Incoming<never>);
    expect(late.seqs).toEqual(range(1, chunks + 1));
    expect(late.hash).toBe(whole);
  });

  it('is given its own bytes out of memory that is used again, whoever stops, leaves or lags beside it', async () => {
    const chunks = 300;
    const expected = createHash('sha256');
    terminal.lent = new Set();
    const [reading, slow, stopped, leaving] = [watch(), watch(), watch(), watch()] as const;
    for (const stream of [reading, slow, stopped, leaving]) await stream.next();
    stopped.call.pause();
    const ends = [readAll(reading as Incoming<never>), readAll(slow as Incoming<never>)];
    for (let index = 0; index < chunks; index += 1) {
      if (index % 8 === 0) slow.call.pause();
      if (index % 8 === 4) slow.call.resume();
      if (index === chunks / 2) leaving.call.cancel();
      const data = chunk(index);
      expected.update(data);
      await terminal.print(data);
    }
    slow.call.resume();
    await terminal.exit();
    stopped.call.resume();
    ends.push(readAll(stopped as Incoming<never>));
    const whole = expected.digest('hex');
    for (const { hash, seqs } of await Promise.all(ends)) {
      expect(seqs).toEqual(range(1, chunks + 1));
      expect(hash).toBe(whole);
    }
    // 17 fill what may wait for one client; what the one that left had waiting is not used again.
    expect(terminal.lent.size).toBeLessThan(chunks / 2);
  });

  it('comes back to live once it has caught up', async () => {
    const stream = watch();
    await stream.next();
    stream.call.pause();
    for (let index = 0; index < 64; index += 1) await terminal.print(chunk(index));
    stream.call.resume();
    const seqs: number[] = [];
    while (seqs.length < 64) {
      const message = await stream.next();
      if (message) seqs.push(...seqsOf([message]));
    }
    // From here on nothing is read from the log any more: it may even be gone.
    await terminal.print('live');
    await terminal.print('again');
    while (seqs.length < 66) {
      const message = await stream.next();
      if (message) seqs.push(...seqsOf([message]));
    }
    expect(seqs).toEqual(range(1, 66));
    stream.call.cancel();
  });

  it('is not told when the server itself has fallen behind the supervisor: the log has what is missing', async () => {
    const stream = watch();
    await stream.next();
    await terminal.print('one');
    let message = await stream.next();
    while (message && eventsOf([message], 'output').length === 0) message = await stream.next();
    const [subscription] = terminal.subscribers;
    subscription?.fail(new GranttyError('SUPERVISOR_UNAVAILABLE', 'too far behind'));
    if (subscription) terminal.subscribers.delete(subscription);
    await terminal.print('two');
    while (terminal.subscribers.size === 0) await new Promise((resolve) => setImmediate(resolve));
    await terminal.print('three');
    await terminal.exit();
    const rest = await stream.rest();
    expect(seqsOf(rest)).toEqual([2, 3, 4]);
    expect(eventsOf(rest, 'closing')[0]?.reason).toBe(ClosingReason.EXITED);
    expect(stream.error).toBeUndefined();
  });

  it('is told of a new size at once that came while the server had no subscription', async () => {
    const stream = watch();
    await stream.next();
    await terminal.print('one');
    let message = await stream.next();
    while (message && eventsOf([message], 'output').length === 0) message = await stream.next();
    const [subscription] = terminal.subscribers;
    if (subscription) terminal.subscribers.delete(subscription);
    terminal.record = { ...terminal.record, size: { cols: 120, rows: 40 } };
    subscription?.fail(new GranttyError('SUPERVISOR_UNAVAILABLE', 'too far behind'));
    const [resized] = eventsOf([(await stream.next()) as never], 'resized');
    expect(resized).toMatchObject({ size: { columns: 120, rows: 40 }, fromSeq: 2n });
    stream.call.cancel();
  });

  it('ends when its authority does, though it reads nothing', async () => {
    const stream = harness.serverStream(
      terminals.watch,
      { terminal: ref },
      await harness.token([{}], { ttl: 20 }),
      { client: harness.connect() },
    );
    await stream.next();
    stream.call.pause();
    for (let index = 0; index < 64; index += 1) await terminal.print(chunk(index));
    harness.clock.advance(20_000);
    while (harness.server.load.streams > 0) await new Promise((resolve) => setImmediate(resolve));
    expect(harness.server.load.watchedTerminals).toBe(0);
    stream.call.cancel();
  });
});

describe('the hub', () => {
  it('encodes an event once for all who are live', async () => {
    await using dir = await temporaryDir();
    await using supervisor = new FakeSupervisor(dir.path);
    const terminal = await supervisor.add({ id: 't1' as Name });
    const hub = new Hub(supervisor);
    const got: EncodedEvent[][] = [[], []];
    const feeds = await Promise.all([hub.join(terminal.snapshot()), hub.join(terminal.snapshot())]);
    const arrived = new Promise<void>((resolve) => {
      got.forEach((events, index) => {
        const sink: LiveSink = {
          events: (batch) => {
            events.push(...batch);
            if (got.every((each) => each.length > 0)) resolve();
          },
          resized: () => {},
          ended: () => {},
        };
        feeds[index]?.live.add(sink);
      });
    });
    await terminal.print('x');
    await arrived;
    expect(got[0]?.[0]?.message).toBe(got[1]?.[0]?.message);
    expect(got[0]?.[0]?.message).toEqual(
      encodeEvent({
        type: 'pty.output',
        seq: 1,
        timeMicros: 1_700_000_000_000_001,
        data: Buffer.from('x'),
      }).message,
    );
    for (const feed of feeds) feed.leave();
    expect(hub.size).toBe(0);
    expect(terminal.subscribers.size).toBe(0);
  });
});
