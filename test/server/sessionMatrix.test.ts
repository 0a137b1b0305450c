/** One capability at a time against every call of SessionService: only its own cells pass. */
import { status } from '@grpc/grpc-js';
import { type Capability, capabilities } from '../../src/core/capability.js';
import { detailsOf, failureOf, type GrantInit, type Harness } from './harness.js';
import { type Scene, type Spawned, sessions, startScene } from './sessionScene.js';

interface Row {
  readonly call: string;
  readonly needs: readonly Capability[];
  /** Whether it needs a send: under way, or settled. */
  readonly send?: 'active' | 'settled';
  readonly run: (
    harness: Harness,
    token: string,
    terminal: Spawned['ref'],
    sendId: string,
  ) => Promise<unknown>;
}

const rows: readonly Row[] = [
  {
    call: 'Spawn',
    needs: ['terminal.create'],
    run: (h, token) =>
      h.unary(sessions.spawn, { owner: '1000', agent: 'coder', type: 'fake' }, token),
  },
  {
    call: 'HasOwnerActivity',
    needs: ['terminal.read'],
    run: (h, token) => h.unary(sessions.hasOwnerActivity, { owner: '1000', agent: 'coder' }, token),
  },
  {
    call: 'Close',
    needs: ['terminal.kill'],
    run: (h, token, terminal) => h.unary(sessions.close, { terminal }, token),
  },
  {
    call: 'Send',
    needs: ['terminal.write', 'terminal.read'],
    run: (h, token, terminal) =>
      opened(h.serverStream(sessions.send, { terminal, text: 'ls' }, token)),
  },
  {
    call: 'ReadSend',
    needs: ['terminal.read'],
    send: 'settled',
    run: (h, token, terminal, sendId) =>
      opened(h.serverStream(sessions.readSend, { terminal, sendId }, token)),
  },
  {
    call: 'CancelSend',
    needs: ['terminal.signal'],
    send: 'active',
    run: (h, token, terminal, sendId) => h.unary(sessions.cancelSend, { terminal, sendId }, token),
  },
  {
    call: 'ReadScrollback',
    needs: ['terminal.read'],
    run: (h, token, terminal) => h.unary(sessions.readScrollback, { terminal }, token),
  },
  {
    call: 'GetScreen',
    needs: ['terminal.read'],
    run: (h, token, terminal) => h.unary(sessions.getScreen, { terminal }, token),
  },
  {
    call: 'FindText',
    needs: ['terminal.read'],
    run: (h, token, terminal) => h.unary(sessions.findText, { terminal, pattern: 'x' }, token),
  },
];

/** Resolves when the stream has begun, rejects when it was refused. */
async function opened(stream: ReturnType<Harness['serverStream']>): Promise<void> {
  if ((await stream.next()) !== undefined) return void stream.call.cancel();
  await stream.rest();
  throw stream.error;
}

describe('capabilities over sessions, one at a time', () => {
  let scene: Scene;
  let harness: Harness;
  beforeAll(async () => {
    scene = await startScene();
    ({ harness } = scene);
  });
  afterAll(() => scene[Symbol.asyncDispose]());

  /** A fresh session, and nothing recorded of what was done before. */
  async function prepared({ send }: Row) {
    const { ref, session } = await scene.spawn();
    let sendId = '';
    if (send !== undefined) {
      const request = { terminal: ref, text: 'x' };
      const stream = harness.serverStream(sessions.send, request, scene.token);
      const first = await stream.next();
      if (first?.event.case === 'started') ({ sendId } = first.event.value);
      if (send === 'settled') {
        session.settle();
        await stream.rest();
      } else stream.call.cancel();
    }
    harness.supervisor.calls.length = 0;
    scene.backend.specs.length = 0;
    session.sends.length = 0;
    return { ref, session, sendId };
  }

  async function refusalOf(row: Row, grants: readonly GrantInit[]) {
    const { ref, session, sendId } = await prepared(row);
    const error = await failureOf(row.run(harness, await harness.token(grants), ref, sendId));
    expect(harness.supervisor.effects).toEqual([]);
    expect(session.sends).toEqual([]);
    expect(session.closes).toEqual([]);
    expect(scene.backend.specs).toEqual([]);
    return error;
  }

  const cells = rows.flatMap((row) => capabilities.map((capability) => ({ ...row, capability })));
  const passes = ({ needs, capability }: (typeof cells)[number]) =>
    needs.length === 1 && needs[0] === capability;

  it.each(cells.filter(passes))('$capability alone allows $call', async (cell) => {
    const { ref, sendId } = await prepared(cell);
    const token = await harness.token([{ actions: [cell.capability] }]);
    await cell.run(harness, token, ref, sendId);
  });

  it.each(cells.filter((cell) => !passes(cell)))(
    '$capability alone does not allow $call, and nothing hears of it',
    async (cell) => {
      const error = await refusalOf(cell, [{ actions: [cell.capability] }]);
      expect(error.code).toBe(status.PERMISSION_DENIED);
      expect(detailsOf(error).info?.reason).toBe('GRANT_MISSING');
    },
  );

  it.each(rows.filter(({ needs }) => needs.length > 1))(
    '$call needs all of it in one grant',
    async (row) => {
      const { ref, sendId } = await prepared(row);
      const token = await harness.token([{ actions: row.needs }]);
      await row.run(harness, token, ref, sendId);
      const error = await refusalOf(
        row,
        row.needs.map((need) => ({ actions: [need] })),
      );
      expect(detailsOf(error).info?.reason).toBe('GRANT_MISSING');
    },
  );

  it.each(capabilities)('%s alone is told the types of sessions', async (capability) => {
    const token = await harness.token([{ actions: [capability] }]);
    const { types } = await harness.unary(sessions.listBackends, {}, token);
    expect(types).toEqual(['shell', 'fake']);
  });

  it.each(capabilities)('%s alone lists what terminal.read lets it see', async (capability) => {
    const { ref } = await scene.spawn();
    await scene.spawn();
    const grant = { actions: [capability], resource: { terminal: ref.id } };
    const token = await harness.token([grant]);
    const request = { owner: '1000', agent: 'coder' };
    const listed = await harness.unary(sessions.listSessions, request, token);
    expect(listed.sessions.map(({ terminal }) => terminal?.id)).toEqual(
      capability === 'terminal.read' ? [ref.id] : [],
    );
  });

  it.each([
    ['another agent', { agent: 'other' }],
    ['one session of the agent', { session: 'default' }],
    ['terminals of some names', { terminal: 'session-*' }],
    ['another owner', { owner: '1001' }],
  ])('a grant over %s does not tell whether the agent is active', async (_, resource) => {
    const token = await harness.token([{ actions: ['terminal.read'], resource }]);
    const request = { owner: '1000', agent: 'coder' };
    const error = await failureOf(harness.unary(sessions.hasOwnerActivity, request, token));
    expect(detailsOf(error).info?.reason).toBe('GRANT_MISSING');
  });

  it('policy hides sessions from activity and lists alike', async () => {
    await using guarded = await startScene();
    await guarded.spawn();
    const { policy } = guarded.harness;
    const asked = { owner: '1000', agent: 'coder' };
    const active = () => guarded.harness.unary(sessions.hasOwnerActivity, asked, guarded.token);
    expect((await active()).active).toBe(true);
    guarded.harness.policy = {
      hash: 'forbids',
      decide: (request) => ({
        ...policy.decide(request),
        permit: request.access.action !== 'terminal.read',
      }),
    };
    expect((await active()).active).toBe(false);
    const listed = await guarded.harness.unary(sessions.listSessions, asked, guarded.token);
    expect(listed.sessions).toEqual([]);
  });
});
