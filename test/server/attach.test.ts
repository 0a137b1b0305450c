import type { MessageInitShape } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { GranttyError } from '../../src/core/errors.js';
import type { Name } from '../../src/core/names.js';
import { ErrorReason } from '../../src/gen/public/grantty/v1/errors_pb.js';
import { AttachFrameKind, ClosingReason } from '../../src/gen/public/grantty/v1/stream_pb.js';
import { AttachmentKind, Signal } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import type { Lease } from '../../src/supervisor/api.js';
import type { FakeTerminal } from '../support/fakeSupervisor.js';
import { type Bidi, detailsOf, Harness, terminals } from './harness.js';
import { eventsOf, kindsOf, type StreamMessage, seqsOf } from './streams.js';

const ref = { owner: '1000', id: 't1' };

type Frame = NonNullable<MessageInitShape<typeof terminals.attach.input>['frame']>;
type Attached = Bidi<typeof terminals.attach>;

const input = (data: string | Uint8Array): Frame => ({
  case: 'input',
  value: { data: Buffer.from(data) },
});

describe('Attach', () => {
  let harness: Harness;
  let terminal: FakeTerminal;
  let token: string;
  beforeEach(async () => {
    harness = await Harness.start();
    terminal = await harness.supervisor.add({ id: 't1' as Name });
    token = await harness.token();
  });
  afterEach(() => harness[Symbol.asyncDispose]());

  function attach(open: object = {}, by = token): Attached {
    const stream = harness.bidi(terminals.attach, by);
    const value = { terminal: ref, kind: AttachmentKind.AGENT, ...open };
    stream.send({ frame: { case: 'open', value } });
    return stream;
  }

  async function attached(open: object = {}, by = token) {
    const stream = attach(open, by);
    const first = await stream.next();
    if (first?.event.case !== 'started') throw new Error('not started');
    return { stream, started: first.event.value };
  }

  /** The next message of this kind. */
  async function next<C extends NonNullable<StreamMessage['event']['case']>>(
    stream: Attached,
    kind: C,
  ) {
    for (let message = await stream.next(); message; message = await stream.next()) {
      const [value] = eventsOf([message], kind);
      if (value) return value;
    }
    throw new Error(`the stream ended without ${kind}`);
  }

  const sent = () =>
    harness.supervisor.calls
      .filter(({ method }) => method === 'send')
      .map(({ args }) => Buffer.from(args[0] as Uint8Array).toString());

  it('delivers output as Watch does, and acknowledges input by its count', async () => {
    await terminal.print('hello');
    const { stream, started } = await attached();
    expect(started.attachmentId).not.toBe('');
    expect(started.inputBytes).toBe(0n);
    stream.send({ frame: input('ab') });
    stream.send({ frame: input('cde') });
    expect((await next(stream, 'inputAck')).bytes).toBe(2n);
    expect((await next(stream, 'inputAck')).bytes).toBe(5n);
    expect(sent()).toEqual(['ab', 'cde']);
    await terminal.exit({ exitCode: 7 });
    const rest = await stream.rest();
    expect(kindsOf(rest).slice(-2)).toEqual(['exited', 'closing']);
    expect(seqsOf(rest)).toContain(2);
    expect(stream.error).toBeUndefined();
  });

  it('keeps delivering after the client half-closes', async () => {
    const { stream } = await attached();
    stream.send({ frame: input('last words') });
    stream.duplex.end();
    await next(stream, 'inputAck');
    await terminal.print('an answer');
    await terminal.exit();
    expect(seqsOf(await stream.rest())).toEqual([1, 2]);
    expect(stream.error).toBeUndefined();
  });

  it('refuses a frame before open, a second open and an empty frame, and ends', async () => {
    const early = harness.bidi(terminals.attach, token);
    early.send({ frame: input('x') });
    await early.rest();
    expect(early.error?.code).toBe(status.INVALID_ARGUMENT);

    const { stream: twice } = await attached();
    twice.send({ frame: { case: 'open', value: { terminal: ref, kind: AttachmentKind.AGENT } } });
    await twice.rest();
    expect(twice.error?.code).toBe(status.INVALID_ARGUMENT);

    const { stream: empty } = await attached();
    empty.send({});
    await empty.rest();
    expect(empty.error?.code).toBe(status.INVALID_ARGUMENT);
    expect(sent()).toEqual([]);
    expect(terminal.attachments.size).toBe(0);
  });

  it('waits 10 s for open and no longer', async () => {
    const silent = harness.bidi(terminals.attach, token);
    while (harness.clock.timers === 0) await new Promise((resolve) => setImmediate(resolve));
    harness.clock.advance(10_000);
    await silent.rest();
    expect(silent.error?.code).toBe(status.INVALID_ARGUMENT);
    expect(harness.clock.timers).toBe(0);
  });

  it('refuses who has no token before any frame is sent', async () => {
    const silent = harness.bidi(terminals.attach, undefined);
    await silent.rest();
    expect(silent.error?.code).toBe(status.UNAUTHENTICATED);
  });

  it('refuses an unspecified kind of attachment', async () => {
    const stream = attach({ kind: 0 });
    await stream.rest();
    expect(detailsOf(stream.error).badRequest?.fieldViolations[0]?.field).toBe('open.kind');
    expect(harness.supervisor.effects).toEqual([]);
  });

  it('sets the size of open when it may, and goes on without when it may not', async () => {
    const size = { columns: 100, rows: 50 };
    const { stream } = await attached({ size });
    await next(stream, 'resized');
    expect(terminal.record.size).toEqual({ cols: 100, rows: 50 });

    const viewer = await harness.token([{ actions: ['terminal.read'] }]);
    const { stream: small } = await attached({ size: { columns: 10, rows: 5 } }, viewer);
    expect(await next(small, 'denied')).toMatchObject({
      frameIndex: 0n,
      frame: AttachFrameKind.OPEN,
      requiredAction: 'terminal.resize',
      reason: ErrorReason.GRANT_MISSING,
    });
    expect(terminal.record.size).toEqual({ cols: 100, rows: 50 });
    await terminal.exit();
    expect(kindsOf(await small.rest())).toContain('exited');
  });

  it('denies a frame, says which, why and by what decision, and carries out the next', async () => {
    const typist = await harness.token([{ actions: ['terminal.read', 'terminal.write'] }]);
    const { stream } = await attached({}, typist);
    stream.send({ frame: input('one') });
    stream.send({ frame: { case: 'signal', value: { signal: Signal.TERM } } });
    stream.send({ frame: input('two') });
    const denied = await next(stream, 'denied');
    expect(denied).toMatchObject({
      frameIndex: 2n,
      frame: AttachFrameKind.SIGNAL,
      requiredAction: 'terminal.signal',
      reason: ErrorReason.GRANT_MISSING,
    });
    expect(harness.intents.map(({ decisionId }) => decisionId)).toContain(denied.decisionId);
    await next(stream, 'inputAck');
    expect(sent()).toEqual(['one', 'two']);
    stream.call.cancel();
  });

  it.each([
    ['input', input('')],
    ['input', input('x'.repeat(64 * 1024 + 1))],
    ['size', { case: 'resize', value: { size: { columns: 0, rows: 1 } } }],
    ['size', { case: 'resize', value: {} }],
    ['signal', { case: 'signal', value: { signal: 0 } }],
  ] as [string, Frame][])('denies a bad %s as a field and goes on', async (_what, frame) => {
    const { stream } = await attached();
    stream.send({ frame });
    expect((await next(stream, 'denied')).reason).toBe(ErrorReason.FIELD_INVALID);
    stream.send({ frame: input('fine') });
    expect((await next(stream, 'inputAck')).bytes).toBe(4n);
    stream.call.cancel();
  });

  it('denies what the terminal cannot take any more', async () => {
    const { stream } = await attached({ until: 2 });
    await terminal.exit();
    await next(stream, 'exited');
    stream.send({ frame: input('x') });
    stream.send({ frame: { case: 'resize', value: { size: { columns: 9, rows: 9 } } } });
    expect((await next(stream, 'denied')).reason).toBe(ErrorReason.TERMINAL_EXITED);
    expect((await next(stream, 'denied')).reason).toBe(ErrorReason.TERMINAL_EXITED);
    stream.call.cancel();
  });

  it('ends when the supervisor is lost in the middle of a frame', async () => {
    const { stream } = await attached();
    harness.supervisor.failures.set('send', new GranttyError('SUPERVISOR_UNAVAILABLE', 'gone'));
    stream.send({ frame: input('x') });
    const rest = await stream.rest();
    expect(eventsOf(rest, 'closing')[0]?.reason).toBe(ClosingReason.SUPERVISOR_UNAVAILABLE);
    expect(stream.error?.code).toBe(status.UNAVAILABLE);
  });

  it('lets a paste wait for a program that does not read, and drops nothing of it', async () => {
    let open = () => {};
    terminal.inputGate = new Promise((resolve) => {
      open = resolve;
    });
    const { stream } = await attached();
    const paste = Buffer.alloc(2 * 1024 * 1024, 'p');
    for (let at = 0; at < paste.length; at += 16 * 1024) {
      stream.send({ frame: input(paste.subarray(at, at + 16 * 1024)) });
    }
    const waiting = () => sent().reduce((sum, text) => sum + text.length, 0);
    while (waiting() <= 256 * 1024) await new Promise((resolve) => setImmediate(resolve));
    // The server has its time to read more, and does not.
    for (let i = 0; i < 50; i += 1) {
      await harness.unary(terminals.getTerminal, { terminal: ref }, token);
    }
    expect(waiting()).toBeLessThanOrEqual(256 * 1024 + 16 * 1024);
    open();
    let taken = 0n;
    while (taken < BigInt(paste.length)) taken = (await next(stream, 'inputAck')).bytes;
    expect(Buffer.concat(terminal.input).equals(paste)).toBe(true);
    stream.call.cancel();
  });

  it('gets a signal past input that waits', async () => {
    terminal.inputGate = new Promise(() => {});
    const { stream } = await attached();
    stream.send({ frame: input('never read') });
    stream.send({ frame: { case: 'signal', value: { signal: Signal.INT } } });
    stream.send({ frame: { case: 'signal', value: { signal: Signal.UNSPECIFIED } } });
    await next(stream, 'denied');
    expect(harness.supervisor.effects).toContain('signal');
    stream.call.cancel();
  });

  it('resumes an attachment with the count of input that was taken', async () => {
    const { stream, started } = await attached();
    stream.send({ frame: input('12345') });
    await next(stream, 'inputAck');
    stream.call.cancel();
    await stream.rest();
    const again = await attached({ attachmentId: started.attachmentId });
    expect(again.started).toMatchObject({
      attachmentId: started.attachmentId,
      attachmentResumed: true,
      inputBytes: 5n,
    });
    const fresh = await attached({ attachmentId: 'forgotten' });
    expect(fresh.started.attachmentResumed).toBe(false);
    again.stream.call.cancel();
    fresh.stream.call.cancel();
  });

  it('holds input to the rate of the grant, frame by frame', async () => {
    const slow = await harness.token([{ constraints: { write_bytes_per_second: 10 } }]);
    const { stream } = await attached({}, slow);
    stream.send({ frame: input('0123456789') });
    stream.send({ frame: input('more') });
    expect((await next(stream, 'denied')).reason).toBe(ErrorReason.RATE_LIMITED);
    harness.clock.advance(1_000);
    stream.send({ frame: input('later') });
    await next(stream, 'inputAck');
    expect(sent()).toEqual(['0123456789', 'later']);
    stream.call.cancel();
  });

  it('decides on input once a second, and at once when something has changed', async () => {
    const { stream } = await attached({}, await harness.token([{}], { jti: 'typist' }));
    const decisions = () => harness.intents.filter(({ frame }) => frame === 'input');
    for (const key of 'abcdef') stream.send({ frame: input(key) });
    for (let taken = 0n; taken < 6n; ) taken = (await next(stream, 'inputAck')).bytes;
    expect(decisions()).toHaveLength(1);
    harness.clock.advance(1_000);
    stream.send({ frame: input('g') });
    await next(stream, 'inputAck');
    expect(decisions()).toHaveLength(2);
    expect(harness.outcomes).toMatchObject([
      { decisionId: decisions()[0]?.decisionId, inputBytes: 6 },
    ]);
    harness.revoked.add('typist');
    harness.revocationEpoch += 1;
    stream.send({ frame: input('h') });
    expect((await next(stream, 'denied')).reason).toBe(ErrorReason.GRANT_REVOKED);
    expect(sent()).not.toContain('h');
    stream.call.cancel();
  });

  it('decides once a second on input with and without signals, though they take turns', async () => {
    const { stream } = await attached();
    const decisions = () => harness.intents.filter(({ frame }) => frame === 'input');
    for (const key of ['a', '\x03', 'b', '\x03', 'c', '\x03']) stream.send({ frame: input(key) });
    for (let taken = 0n; taken < 6n; ) taken = (await next(stream, 'inputAck')).bytes;
    expect(decisions()).toHaveLength(2);
    harness.clock.advance(1_000);
    stream.send({ frame: input('d') });
    await next(stream, 'inputAck');
    expect(decisions()).toHaveLength(3);
    expect(harness.outcomes.map(({ inputBytes }) => inputBytes)).toEqual([3, 3]);
    stream.call.cancel();
  });

  it('asks again for input that raises a signal', async () => {
    const typist = await harness.token([{ actions: ['terminal.read', 'terminal.write'] }]);
    const { stream } = await attached({}, typist);
    stream.send({ frame: input('fine') });
    stream.send({ frame: input('a\x03b') });
    expect(await next(stream, 'denied')).toMatchObject({
      frameIndex: 2n,
      requiredAction: 'terminal.signal',
    });
    expect(sent()).toEqual(['fine']);
    stream.call.cancel();
  });

  describe('reauthenticate', () => {
    const reauthenticate = (stream: Attached, by: string) =>
      stream.send({ frame: { case: 'reauthenticate', value: { token: by } } });

    it('lets the stream outlive its first token', async () => {
      const { stream } = await attached({}, await harness.token([{}], { ttl: 60 }));
      reauthenticate(stream, await harness.token([{}], { ttl: 600 }));
      stream.send({ frame: input('x') });
      await next(stream, 'inputAck');
      harness.clock.advance(120_000);
      stream.send({ frame: input('y') });
      expect((await next(stream, 'inputAck')).bytes).toBe(2n);
      const leases = harness.supervisor.calls
        .filter(({ method }) => method === 'send')
        .map(({ args }) => (args[1] as Lease).notAfter);
      expect(leases[1]).toBe(harness.clock.now() - 120_000 + 600_000);
      stream.call.cancel();
    });

    it.each([
      ['another subject', [{}], { subject: 'bob' }, ErrorReason.TOKEN_INVALID],
      ['no right to read', [{ actions: ['terminal.write'] }], {}, ErrorReason.GRANT_MISSING],
      ['an end in the past', [{}], { ttl: 1, now: 1_600_000_000_000 }, ErrorReason.TOKEN_EXPIRED],
    ])('refuses a token of %s and keeps the old one', async (_what, grants, rest, reason) => {
      const { stream } = await attached();
      reauthenticate(stream, await harness.token(grants, rest));
      expect(await next(stream, 'denied')).toMatchObject({
        frameIndex: 1n,
        frame: AttachFrameKind.REAUTHENTICATE,
        reason,
      });
      stream.send({ frame: input('still here') });
      await next(stream, 'inputAck');
      stream.call.cancel();
    });

    it('forgets what was decided under the old token', async () => {
      const { stream } = await attached();
      stream.send({ frame: input('x') });
      await next(stream, 'inputAck');
      reauthenticate(stream, await harness.token([{ actions: ['terminal.read'] }]));
      stream.send({ frame: input('y') });
      expect((await next(stream, 'denied')).requiredAction).toBe('terminal.write');
      stream.call.cancel();
    });
  });

  it('has no effect any more once its authority has ended', async () => {
    const { stream } = await attached({}, await harness.token([{}], { ttl: 10 }));
    harness.clock.advance(10_000);
    stream.send({ frame: input('too late') });
    const rest = await stream.rest();
    expect(rest.at(-1)?.event.case).toBe('closing');
    expect(eventsOf(rest, 'closing')[0]?.reason).toBe(ClosingReason.TOKEN_EXPIRED);
    expect(sent()).toEqual([]);
    expect(terminal.attachments.size).toBe(0);
  });

  it('carries out nothing more once it has ended, though the client has yet to read so', async () => {
    let open = () => {};
    terminal.inputGate = new Promise((resolve) => {
      open = resolve;
    });
    const { stream } = await attached();
    stream.send({ frame: input('taken late') });
    stream.call.pause();
    for (let i = 0; i < 64; i += 1) await terminal.print(Buffer.alloc(64 * 1024, 'x'));
    const drained = harness.server.drain(5_000);
    while (harness.server.load.streams > 0) await new Promise((resolve) => setImmediate(resolve));
    open();
    stream.send({ frame: input('too late') });
    for (let i = 0; i < 300; i += 1) await new Promise((resolve) => setImmediate(resolve));
    stream.call.resume();
    expect((await stream.rest()).at(-1)?.event.case).toBe('closing');
    expect(stream.error?.code).toBe(status.UNAVAILABLE);
    expect(sent()).toEqual(['taken late']);
    await drained;
  });

  it('leaves nothing behind when clients vanish', async () => {
    const timers = harness.clock.timers;
    const all = await Promise.all(Array.from({ length: 20 }, () => attached()));
    for (const { stream } of all) {
      stream.send({ frame: input('x') });
      stream.call.cancel();
    }
    await Promise.all(all.map(({ stream }) => stream.rest()));
    while (terminal.attachments.size > 0 || harness.server.load.streams > 0) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(harness.server.load.watchedTerminals).toBe(0);
    expect(harness.clock.timers).toBe(timers);
  });
});
