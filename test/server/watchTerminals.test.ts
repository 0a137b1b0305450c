import type { MessageShape } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { GranttyError } from '../../src/core/errors.js';
import type { Name } from '../../src/core/names.js';
import { ClosingReason } from '../../src/gen/public/grantty/v1/stream_pb.js';
import { TerminalState } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import type { WatchTerminalsResponseSchema } from '../../src/gen/public/grantty/v1/terminal_service_pb.js';
import { detailsOf, Harness, type Incoming, terminals } from './harness.js';

type Message = MessageShape<typeof WatchTerminalsResponseSchema>;

describe('WatchTerminals', () => {
  let harness: Harness;
  let token: string;
  beforeEach(async () => {
    harness = await Harness.start();
    token = await harness.token([{ actions: ['terminal.read'] }]);
    await harness.supervisor.add({ id: 'a1' as Name });
    await harness.supervisor.add({ id: 'b2' as Name, agent: 'reviewer' as Name });
    await harness.supervisor.add({ id: 'c3' as Name, owner: '2000' as Name });
  });
  afterEach(() => harness[Symbol.asyncDispose]());

  const watch = (request: object = {}, by = token) =>
    harness.serverStream(terminals.watchTerminals, request, by);
  const fake = (id: string, owner = '1000') => {
    const terminal = harness.supervisor.terminals.get(`${owner}/${id}`);
    if (!terminal) throw new Error(`no terminal ${id}`);
    return terminal;
  };

  /** Kind of event, id of its terminal. */
  function told({ event }: Message): string {
    switch (event.case) {
      case 'snapshot':
      case 'changed':
        return `${event.case} ${event.value.terminal?.ref?.id}`;
      case 'removed':
        return `removed ${event.value.ref?.id}`;
      default:
        return `${event.case}`;
    }
  }

  async function next(stream: Incoming<Message>): Promise<string> {
    const message = await stream.next();
    return message ? told(message) : 'end';
  }

  /** The snapshot, and the cursor at its end. */
  async function snapshot(stream: Incoming<Message>) {
    const ids: string[] = [];
    for (;;) {
      const message = await stream.next();
      if (!message) throw new Error('the stream ended within its snapshot');
      if (message.event.case === 'snapshotEnd') return { ids, ...message.event.value };
      ids.push(told(message));
    }
  }

  it('tells what there is, then what becomes of it, as far as the caller may read it', async () => {
    const stream = watch();
    const { ids, resumed } = await snapshot(stream);
    expect(ids).toEqual(['snapshot a1', 'snapshot b2']);
    expect(resumed).toBe(false);
    harness.supervisor.announce(fake('c3', '2000'));
    await fake('a1').exit({ exitCode: 4 });
    harness.supervisor.announce(fake('a1'));
    const changed = await stream.next();
    expect(changed?.event).toMatchObject({
      case: 'changed',
      value: { terminal: { state: TerminalState.EXITED, exitStatus: { exitCode: 4 } } },
    });
    harness.supervisor.announce(fake('a1'), 'removed');
    harness.supervisor.announce(fake('c3', '2000'), 'removed');
    harness.supervisor.announce(fake('b2'));
    expect(await next(stream)).toBe('removed a1');
    expect(await next(stream)).toBe('changed b2');
    stream.call.cancel();
  });

  it('takes back what leaves the filter', async () => {
    const stream = watch({ filter: { states: [TerminalState.RUNNING] } });
    expect((await snapshot(stream)).ids).toEqual(['snapshot a1', 'snapshot b2']);
    await fake('a1').exit();
    harness.supervisor.announce(fake('a1'));
    expect(await next(stream)).toBe('removed a1');
    stream.call.cancel();
  });

  it('goes on from a cursor: with nothing, with what was missed, or anew', async () => {
    const first = watch();
    const { cursor } = await snapshot(first);
    first.call.cancel();

    const idle = watch({ cursor });
    expect(await snapshot(idle)).toMatchObject({ ids: [], resumed: true });
    harness.supervisor.announce(fake('a1'));
    expect(await next(idle)).toBe('changed a1');
    idle.call.cancel();

    const missed = watch({ cursor });
    expect(await snapshot(missed)).toMatchObject({ ids: [], resumed: true });
    expect(await next(missed)).toBe('changed a1');
    harness.supervisor.announce(fake('b2'), 'removed');
    expect(await next(missed)).toBe('removed b2');
    missed.call.cancel();

    harness.supervisor.forgetChanges();
    const anew = watch({ cursor });
    expect(await snapshot(anew)).toMatchObject({ resumed: false });
    anew.call.cancel();
  });

  it('does not go on from the cursor of another view', async () => {
    const first = watch();
    const { cursor } = await snapshot(first);
    first.call.cancel();
    const narrower = await harness.token([
      { actions: ['terminal.read'], resource: { agent: 'coder' } },
    ]);
    for (const [request, by] of [
      [{ cursor, filter: { agent: 'coder' } }, token],
      [{ cursor }, narrower],
      [{ cursor: 'nonsense' }, token],
    ] as const) {
      const stream = watch(request, by);
      expect((await snapshot(stream)).resumed).toBe(false);
      stream.call.cancel();
    }
  });

  it('tells who may read nothing that there is nothing, and asks the supervisor nothing', async () => {
    harness.supervisor.calls.length = 0;
    const stream = watch({}, await harness.token([{ actions: ['terminal.write'] }]));
    expect((await snapshot(stream)).ids).toEqual([]);
    harness.clock.advance(15_000);
    expect(await next(stream)).toBe('heartbeat');
    expect(harness.supervisor.calls).toEqual([]);
    stream.call.cancel();
  });

  it('takes back what a grant that has ended let be seen', async () => {
    const soon = Math.floor(harness.clock.now() / 1000) + 60;
    const by = await harness.token([
      { actions: ['terminal.read'], resource: { agent: 'coder' } },
      { actions: ['terminal.read'], constraints: { expires_at: soon } },
    ]);
    const stream = watch({}, by);
    expect((await snapshot(stream)).ids).toHaveLength(2);
    harness.clock.advance(60_000);
    let event = await next(stream);
    while (event === 'heartbeat') event = await next(stream);
    expect(event).toBe('removed b2');
    stream.call.cancel();
  });

  it('shows and hides by a new policy at once', async () => {
    const stream = watch();
    await snapshot(stream);
    harness.policy = {
      hash: 'p',
      decide: ({ access }) => ({ permit: access.target.id !== 'a1', policyIds: [], hash: 'p' }),
    };
    harness.server.recheck();
    expect(await next(stream)).toBe('removed a1');
    harness.policy = { hash: 'q', decide: () => ({ permit: true, policyIds: [], hash: 'q' }) };
    harness.server.recheck();
    expect(await next(stream)).toBe('changed a1');
    stream.call.cancel();
  });

  it.each([
    [
      'TOKEN_EXPIRED',
      ClosingReason.TOKEN_EXPIRED,
      status.UNAUTHENTICATED,
      (on: Harness) => on.clock.advance(600_000),
    ],
    [
      'SERVER_DRAINING',
      ClosingReason.SERVER_DRAINING,
      status.UNAVAILABLE,
      (on: Harness) => void on.server.drain(1_000),
    ],
    [
      'SUPERVISOR_UNAVAILABLE',
      ClosingReason.SUPERVISOR_UNAVAILABLE,
      status.UNAVAILABLE,
      (on: Harness) => {
        on.supervisor.failures.set('list', new GranttyError('SUPERVISOR_UNAVAILABLE', 'gone'));
        on.policy = { hash: 'x', decide: () => ({ permit: true, policyIds: [], hash: 'x' }) };
        on.server.recheck();
      },
    ],
  ])('closes with %s', async (reason, closing, code, act) => {
    const stream = watch();
    await snapshot(stream);
    act(harness);
    const rest = await stream.rest();
    expect(rest.at(-1)?.event).toMatchObject({ case: 'closing', value: { reason: closing } });
    expect(stream.error?.code).toBe(code);
    expect(detailsOf(stream.error).info?.reason).toBe(reason);
  });

  it('leaves nothing behind', async () => {
    const timers = harness.clock.timers;
    const streams = Array.from({ length: 20 }, () => watch());
    await Promise.all(streams.map(snapshot));
    for (const stream of streams) stream.call.cancel();
    await Promise.all(streams.map((stream) => stream.rest()));
    while (harness.server.load.streams > 0) await new Promise((resolve) => setImmediate(resolve));
    expect(harness.supervisor.changed.listenerCount('change')).toBe(0);
    expect(harness.clock.timers).toBe(timers);
  });
});
