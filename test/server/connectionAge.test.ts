/** Connections that have grown old: who is told what, what may finish, and when they are gone. */
import { EventEmitter } from 'node:events';
import type { ServerHttp2Session } from 'node:http2';
import { status } from '@grpc/grpc-js';
import type { VerifiedToken } from '../../src/auth/token.js';
import type { Name } from '../../src/core/names.js';
import { ServerService } from '../../src/gen/public/grantty/v1/server_service_pb.js';
import { ClosingReason } from '../../src/gen/public/grantty/v1/stream_pb.js';
import { ConnectionAge } from '../../src/server/connectionAge.js';
import { OpenStreams } from '../../src/server/openStreams.js';
import { detailsOf, failureOf, Harness, terminals } from './harness.js';
import { ManualClock } from './manualClock.js';
import { eventsOf } from './streams.js';

const ref = { terminal: { owner: '1000', id: 't1' } };
const AGE_MS = 60_000;
const NOTICE_MS = 1_000;
const GRACE_MS = 75_000;
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('a connection that has grown old', () => {
  let harness: Harness;
  let clock: ManualClock;
  let token: string;
  beforeEach(async () => {
    clock = new ManualClock();
    harness = await Harness.start({
      limits: { connectionAgeMs: AGE_MS },
      connectionClock: clock,
    });
    await harness.supervisor.add({ id: 't1' as Name });
    token = await harness.token();
  });
  afterEach(() => harness[Symbol.asyncDispose]());

  const untilConnections = async (count: number) => {
    while (harness.server.load.connections !== count) await turn();
  };

  it('has its streams told where they were and to go on elsewhere, and goes', async () => {
    await harness.supervisor.terminals.get('1000/t1')?.print('x');
    const stream = harness.serverStream(terminals.watch, ref, token);
    for (let i = 0; i < 3; i += 1) await stream.next();
    clock.advance(AGE_MS);
    expect(eventsOf(await stream.rest(), 'closing')).toMatchObject([
      { reason: ClosingReason.SERVER_DRAINING, lastSeq: 1n },
    ]);
    expect(stream.error?.code).toBe(status.UNAVAILABLE);
    const { info, retry } = detailsOf(stream.error);
    expect(info?.reason).toBe('SERVER_DRAINING');
    expect(retry?.retryDelay).toBeDefined();
    clock.advance(NOTICE_MS);
    await untilConnections(0);
    // On another connection, as if nothing had been.
    await harness.unary(terminals.getTerminal, ref, token);
  });

  it('leaves a younger one and its streams alone', async () => {
    const old = harness.serverStream(terminals.watch, ref, token);
    await old.next();
    clock.advance(AGE_MS / 2);
    const young = harness.serverStream(terminals.watch, ref, token, { client: harness.connect() });
    await young.next();
    clock.advance(AGE_MS / 2);
    await old.rest();
    clock.advance(NOTICE_MS);
    await untilConnections(1);
    await harness.supervisor.terminals.get('1000/t1')?.print('still');
    let seen = await young.next();
    while (seen?.event.case !== 'output') seen = await young.next();
    expect(young.error).toBeUndefined();
  });

  it('lets a call in progress finish', async () => {
    let open = () => {};
    const terminal = harness.supervisor.terminals.get('1000/t1');
    if (!terminal) throw new Error('there is one');
    terminal.inputGate = new Promise((resolve) => {
      open = resolve;
    });
    const written = harness.unary(terminals.write, { ...ref, data: Buffer.from('x') }, token);
    while (!harness.supervisor.effects.includes('write')) await turn();
    clock.advance(AGE_MS);
    clock.advance(NOTICE_MS);
    await turn();
    open();
    expect((await written).written).toBe(1);
    await untilConnections(0);
  });

  it('is cut off when a call does not finish in the grace', async () => {
    const terminal = harness.supervisor.terminals.get('1000/t1');
    if (!terminal) throw new Error('there is one');
    terminal.inputGate = new Promise(() => {});
    const written = failureOf(
      harness.unary(terminals.write, { ...ref, data: Buffer.from('x') }, token),
    );
    while (!harness.supervisor.effects.includes('write')) await turn();
    clock.advance(AGE_MS);
    clock.advance(NOTICE_MS);
    await turn();
    expect(harness.server.load.connections).toBe(1);
    clock.advance(GRACE_MS);
    expect((await written).code).toBe(status.UNAVAILABLE);
    await untilConnections(0);
  });

  it('sends a Wait away with the time to come back', async () => {
    const waited = failureOf(
      harness.unary(terminals.wait, { ...ref, condition: { case: 'exit', value: true } }, token),
    );
    while (harness.server.load.streams === 0) await turn();
    clock.advance(AGE_MS);
    const error = await waited;
    expect(error.code).toBe(status.UNAVAILABLE);
    expect(detailsOf(error).info?.reason).toBe('SERVER_DRAINING');
  });

  it('says in GetServerInfo how old it may grow', async () => {
    const info = await harness.unary(ServerService.method.getServerInfo, {}, token);
    expect(info.limits?.connectionAge).toMatchObject({ seconds: BigInt(AGE_MS / 1000), nanos: 0 });
  });
});

describe('the age of connections', () => {
  class FakeSession extends EventEmitter {
    readonly said: string[] = [];
    readonly socket = { remoteAddress: '192.0.2.1', remotePort: 7 };
    readonly destroyed = false;
    readonly closed = false;
    goaway() {
      this.said.push('goaway');
    }
    close() {
      this.said.push('close');
    }
  }

  it('is up to a fifth less by chance, so that who came together does not leave together', () => {
    for (const [random, least] of [
      [0, AGE_MS],
      [0.5, AGE_MS * 0.9],
    ] as const) {
      const clock = new ManualClock();
      const session = new FakeSession();
      const done: string[] = [];
      const age = new ConnectionAge({
        clock,
        ageMs: AGE_MS,
        retire: (peer) => done.push(`retire ${peer}`),
        forget: (peer) => done.push(`forget ${peer}`),
        cut: (peer) => done.push(`cut ${peer}`),
        random: () => random,
      });
      age.began(session as unknown as ServerHttp2Session);
      clock.advance(least - 1);
      expect(session.said).toEqual([]);
      clock.advance(1);
      // Calls that were begun before the peer has heard of it still find somebody.
      expect(session.said).toEqual(['goaway']);
      clock.advance(NOTICE_MS);
      expect(session.said).toEqual(['goaway', 'close']);
      session.emit('close');
      clock.advance(GRACE_MS);
      expect(done).toEqual(['retire 192.0.2.1:7', 'forget 192.0.2.1:7']);
      expect(clock.timers).toBe(0);
    }
  });

  it('reaches streams that are opened before the peer has heard of it, and none of the next one', () => {
    const streams = new OpenStreams();
    const bearer = { issuer: 'i', subject: 's' } as VerifiedToken;
    const call = { signal: new AbortController().signal, peer: { connection: '192.0.2.1:7' } };
    streams.retire('192.0.2.1:7');
    expect(streams.open(bearer, call).stop.reason).toMatchObject({ reason: 'SERVER_DRAINING' });
    streams.forget('192.0.2.1:7');
    expect(streams.open(bearer, call).stop.aborted).toBe(false);
  });
});
