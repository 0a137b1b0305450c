import { status } from '@grpc/grpc-js';
import { GranttyError } from '../../src/core/errors.js';
import { ClosingReason } from '../../src/gen/public/grantty/v1/stream_pb.js';
import { TerminalBackendCleanupError } from '../../src/session/sessionError.js';
import { gate } from '../session/fakeBackend.js';
import { detailsOf, failureOf, terminals } from './harness.js';
import { type Scene, type Spawned, sessions, startScene } from './sessionScene.js';

const pair = { owner: '1000', agent: 'coder' };

describe('SessionService', () => {
  let scene: Scene;
  beforeEach(async () => {
    scene = await startScene();
  });
  afterEach(() => scene[Symbol.asyncDispose]());

  const { send, readSend } = sessions;

  /** A send that has started. */
  async function begun(spawned: Spawned, token = scene.token) {
    const request = { terminal: spawned.ref, text: 'ls' };
    const stream = scene.harness.serverStream(send, request, token);
    const first = await stream.next();
    if (first?.event.case !== 'started') throw new Error('it did not start');
    return { stream, sendId: first.event.value.sendId };
  }

  const reasonOf = async (call: Promise<unknown>) => detailsOf(await failureOf(call)).info?.reason;

  describe('a stream of a send', () => {
    it('ends when its token is revoked, and the send goes on for others', async () => {
      const { harness } = scene;
      const spawned = await scene.spawn();
      const token = await harness.token([{}], { jti: 'stolen' });
      const { stream, sendId } = await begun(spawned, token);
      harness.revoked.add('stolen');
      harness.revocationEpoch += 1;
      harness.server.recheck();
      const [closing] = await stream.rest();
      expect(closing?.event).toMatchObject({
        case: 'closing',
        value: { reason: ClosingReason.GRANT_REVOKED },
      });
      expect(stream.error?.code).toBe(status.PERMISSION_DENIED);

      const other = harness.serverStream(readSend, { terminal: spawned.ref, sendId }, scene.token);
      expect((await other.next())?.event).toMatchObject({ case: 'started', value: { sendId } });
      spawned.session.settle();
      const rest = await other.rest();
      expect(rest.map(({ event }) => event.case)).toEqual(['result']);
      expect(other.error).toBeUndefined();
    });

    it('needs terminal.read alone to stay open, and warns of its end, then ends', async () => {
      const { harness } = scene;
      const spawned = await scene.spawn();
      const token = await harness.token([{}], { ttl: 60 });
      const { stream } = await begun(spawned, token);
      const writes = harness.intents.filter(({ action }) => action === 'terminal.write');
      harness.clock.advance(31_000);
      expect((await stream.next())?.event.case).toBe('heartbeat');
      expect((await stream.next())?.event.case).toBe('expiring');
      harness.clock.advance(100_000);
      const rest = await stream.rest();
      expect(rest.at(-1)?.event).toMatchObject({
        case: 'closing',
        value: { reason: ClosingReason.TOKEN_EXPIRED },
      });
      expect(detailsOf(stream.error).info?.reason).toBe('TOKEN_EXPIRED');
      const later = harness.intents.filter(({ action }) => action === 'terminal.write');
      expect(later).toEqual(writes);
    });

    it('is sent away when the server drains', async () => {
      const { stream } = await begun(await scene.spawn());
      const drained = scene.harness.server.drain(1_000);
      const [closing] = await stream.rest();
      expect(closing?.event).toMatchObject({
        case: 'closing',
        value: { reason: ClosingReason.SERVER_DRAINING },
      });
      expect(stream.error?.code).toBe(status.UNAVAILABLE);
      await drained;
    });

    it('ends with the failure of the send', async () => {
      const spawned = await scene.spawn();
      const { stream } = await begun(spawned);
      spawned.session.fail(new GranttyError('SUPERVISOR_UNAVAILABLE', 'the supervisor is gone'));
      expect((await stream.rest()).at(-1)?.event.case).toBe('closing');
      expect(detailsOf(stream.error).info?.reason).toBe('SUPERVISOR_UNAVAILABLE');
    });

    it('ends without a word of what was a defect', async () => {
      const spawned = await scene.spawn();
      const { stream } = await begun(spawned);
      spawned.session.fail(new Error('secret detail'));
      await stream.rest();
      expect(stream.error?.code).toBe(status.INTERNAL);
      expect(stream.error?.details).not.toContain('secret');
    });
  });

  it('types and interrupts under the lease of the caller', async () => {
    const { harness } = scene;
    const spawned = await scene.spawn();
    await begun(spawned, await harness.token([{}], { jti: 'mine' }));
    const lease = spawned.session.sends[0]?.leases?.lease('write');
    expect(lease?.id).toContain('mine');
    expect(lease?.notAfter).toBe(harness.clock.now() + 600_000);
  });

  it('closes under the lease of the caller', async () => {
    const { harness, backend } = scene;
    const spawned = await scene.spawn();
    const closing = gate();
    spawned.session.onClose = () => closing.opened;
    const token = await harness.token([{}], { jti: 'mine' });
    const closed = harness.unary(sessions.close, { terminal: spawned.ref }, token);
    while (spawned.session.closes.length === 0) await new Promise((go) => setImmediate(go));
    expect(backend.specs[0]?.resource.leases?.lease('kill').id).toContain('mine');
    let asked = () => {};
    const decided = new Promise<void>((resolve) => {
      asked = resolve;
    });
    harness.onIntent = () => asked();
    const joined = harness.unary(sessions.close, { terminal: spawned.ref }, scene.token);
    await decided;
    await new Promise((go) => setImmediate(go));
    closing.open();
    expect((await closed).closed).toBe(true);
    expect(await joined).toMatchObject({ closed: false, quiescent: true });
    expect(spawned.session.closes).toHaveLength(1);
  });

  it('keeps a session whose processes survive, and names them', async () => {
    const { harness } = scene;
    const spawned = await scene.spawn();
    const survivors = [{ pid: 77, comm: 'stuck\x1b[2J' }];
    spawned.session.onClose = async () => {
      throw new TerminalBackendCleanupError('it lives', undefined, survivors);
    };
    const answer = await harness.unary(sessions.close, { terminal: spawned.ref }, scene.token);
    expect(answer).toMatchObject({
      closed: false,
      quiescent: false,
      survivors: [{ pid: 77, command: 'stuck\uFFFD[2J' }],
    });
    spawned.session.onClose = async () => {};
    const listed = await harness.unary(sessions.listSessions, pair, scene.token);
    expect(listed.sessions).toHaveLength(1);
    const again = await harness.unary(sessions.close, { terminal: spawned.ref }, scene.token);
    expect(again).toMatchObject({ closed: true, quiescent: true });
  });

  it('lists in the order of publication, and is active from the begin of a spawn to the end of a close', async () => {
    const { harness, backend } = scene;
    const active = async () =>
      (await harness.unary(sessions.hasOwnerActivity, pair, scene.token)).active;
    expect(await active()).toBe(false);
    const setUp = gate();
    const made = backend.onSpawn;
    backend.onSpawn = async (spec) => {
      await setUp.opened;
      await made(spec);
    };
    const slow = scene.spawn('slow');
    while (backend.specs.length === 0) await new Promise((go) => setImmediate(go));
    expect(await active()).toBe(true);
    expect((await harness.unary(sessions.listSessions, pair, scene.token)).sessions).toEqual([]);
    const taken = harness.unary(
      sessions.spawn,
      { ...pair, type: 'fake', name: 'slow' },
      scene.token,
    );
    expect(await reasonOf(taken)).toBe('TERMINAL_EXISTS');
    backend.onSpawn = made;
    await scene.spawn('quick');
    setUp.open();
    const { ref } = await slow;
    const { sessions: listed } = await harness.unary(sessions.listSessions, pair, scene.token);
    expect(listed.map(({ name }) => name)).toEqual(['quick', 'slow']);
    for (const { terminal } of listed) {
      expect(await active()).toBe(true);
      await harness.unary(sessions.close, terminal ? { terminal } : {}, scene.token);
    }
    expect(await active()).toBe(false);
    expect(ref.id).toMatch(/^session-[0-9a-f]{16}$/);
  });

  it('says nothing of a session that was to another terminal of the same id', async () => {
    const { harness } = scene;
    const spawned = await scene.spawn();
    const { record } = spawned.terminal;
    harness.supervisor.terminals.delete(`1000/${record.id}`);
    await spawned.terminal.close();
    await harness.supervisor.add({ ...record, uid: 'another' });
    const closing = harness.unary(sessions.close, { terminal: spawned.ref }, scene.token);
    expect(await reasonOf(closing)).toBe('TERMINAL_NOT_FOUND');
  });

  it('takes over what lives of an earlier server: once, in order, without what has exited', async () => {
    const { harness, backend } = scene;
    const add = (id: string, rest: object) =>
      harness.supervisor.add({ id: id as never, backend: 'fake', ...rest });
    await add('session-b', { createdAt: 2, name: 'b' });
    await add('session-a', { createdAt: 1, name: 'a' });
    await add('plain', { backend: 'command' });
    await add('session-gone', { state: 'exited' });
    await add('session-other', { agent: 'other' });
    const list = () => harness.unary(sessions.listSessions, pair, scene.token);
    const [{ sessions: listed }] = await Promise.all([list(), list()]);
    expect(listed.map(({ name, type }) => [name, type])).toEqual([
      ['a', 'fake'],
      ['b', 'fake'],
    ]);
    expect(backend.specs.map(({ sessionId }) => sessionId)).toEqual(['session-a', 'session-b']);
    const { stream } = await begun({
      ref: { owner: '1000', id: 'session-a' },
      session: backend.last,
      terminal: await add('unused', {}),
    });
    stream.call.cancel();
  });

  it('tries again what it could not take over while the supervisor was away', async () => {
    const { harness, backend } = scene;
    const away = new GranttyError('SUPERVISOR_UNAVAILABLE', 'away');
    await harness.supervisor.add({ id: 'session-a' as never, backend: 'fake' });
    const list = () => harness.unary(sessions.listSessions, pair, scene.token);
    harness.supervisor.failures.set('list', away);
    expect(await reasonOf(list())).toBe('SUPERVISOR_UNAVAILABLE');
    backend.onSpawn = () => Promise.reject(away);
    expect(await reasonOf(list())).toBe('SUPERVISOR_UNAVAILABLE');
    backend.onSpawn = async () => {};
    expect((await list()).sessions).toHaveLength(1);
  });

  it('counts a send as a stream of its principal', async () => {
    const spawned = await scene.spawn();
    const { stream } = await begun(spawned);
    expect(scene.harness.server.load.streams).toBe(1);
    spawned.session.settle();
    await stream.rest();
    expect(scene.harness.server.load.streams).toBe(0);
  });

  it('knows no session for a deleted terminal', async () => {
    const { harness } = scene;
    const spawned = await scene.spawn('name');
    await spawned.terminal.exit();
    await harness.unary(terminals.deleteTerminal, { terminal: spawned.ref }, scene.token);
    expect(spawned.session.closes).toHaveLength(1);
    expect((await harness.unary(sessions.listSessions, pair, scene.token)).sessions).toEqual([]);
    await scene.spawn('name');
  });

  it.each([
    ['type', { type: 'none' }],
    ['name', { name: 'x'.repeat(257) }],
    ['agent', { agent: '' }],
    ['size', { size: { columns: 0, rows: 1 } }],
  ])('refuses to spawn with a bad %s', async (_, rest) => {
    const request = { ...pair, type: 'fake', ...rest };
    expect(await reasonOf(scene.harness.unary(sessions.spawn, request, scene.token))).toBe(
      'FIELD_INVALID',
    );
    expect(scene.backend.specs).toEqual([]);
  });

  it.each([
    ['text', { text: 'x'.repeat(64 * 1024 + 1) }],
    ['timeout', { timeout: { seconds: 601n } }],
    ['timeout', { timeout: {} }],
    ['request_id', { requestId: '\n' }],
  ])('refuses to send with a bad %s, and types nothing', async (_, rest) => {
    const { ref, session } = await scene.spawn();
    const stream = scene.harness.serverStream(send, { terminal: ref, ...rest }, scene.token);
    await stream.rest();
    expect(detailsOf(stream.error).info?.reason).toBe('FIELD_INVALID');
    expect(session.sends).toEqual([]);
  });
});
