/** One capability at a time against every call and every frame: only its own cells pass. */
import { status } from '@grpc/grpc-js';
import { type Capability, capabilities } from '../../src/core/capability.js';
import type { Name } from '../../src/core/names.js';
import { ServerService } from '../../src/gen/public/grantty/v1/server_service_pb.js';
import { AttachFrameKind } from '../../src/gen/public/grantty/v1/stream_pb.js';
import { AttachmentKind, Signal } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { detailsOf, failureOf, Harness, terminals } from './harness.js';

interface Row {
  readonly call: string;
  readonly needs: readonly Capability[];
  /** Whether it needs the terminal to have exited. */
  readonly exited?: boolean;
  readonly run: (harness: Harness, token: string, id: string) => Promise<unknown>;
}

const ref = (id: string) => ({ owner: '1000', id });

const rows: readonly Row[] = [
  {
    call: 'CreateTerminal',
    needs: ['terminal.create'],
    run: (h, token, id) =>
      h.unary(terminals.createTerminal, { agent: 'coder', owner: '1000', id: `new-${id}` }, token),
  },
  {
    call: 'StartTerminal',
    needs: ['terminal.create'],
    exited: true,
    run: (h, token, id) => h.unary(terminals.startTerminal, { terminal: ref(id) }, token),
  },
  {
    call: 'UpdateTerminal',
    needs: ['terminal.create'],
    run: (h, token, id) =>
      h.unary(terminals.updateTerminal, { terminal: ref(id), title: 'x' }, token),
  },
  {
    call: 'GetTerminal',
    needs: ['terminal.read'],
    run: (h, token, id) => h.unary(terminals.getTerminal, { terminal: ref(id) }, token),
  },
  {
    call: 'Watch',
    needs: ['terminal.read'],
    exited: true,
    run: (h, token, id) => finished(h.serverStream(terminals.watch, { terminal: ref(id) }, token)),
  },
  {
    call: 'Attach, its open',
    needs: ['terminal.read'],
    exited: true,
    run: (h, token, id) => {
      const stream = h.bidi(terminals.attach, token);
      stream.send(open(id));
      return finished(stream);
    },
  },
  {
    call: 'Write',
    needs: ['terminal.write'],
    run: (h, token, id) =>
      h.unary(terminals.write, { terminal: ref(id), data: Buffer.from('ls\n') }, token),
  },
  {
    call: 'Resize',
    needs: ['terminal.resize'],
    run: (h, token, id) =>
      h.unary(terminals.resize, { terminal: ref(id), size: { columns: 90, rows: 30 } }, token),
  },
  {
    call: 'Signal',
    needs: ['terminal.signal'],
    run: (h, token, id) =>
      h.unary(terminals.signal, { terminal: ref(id), signal: Signal.INT }, token),
  },
  {
    call: 'Signal of SIGKILL',
    needs: ['terminal.signal', 'terminal.kill'],
    run: (h, token, id) =>
      h.unary(terminals.signal, { terminal: ref(id), signal: Signal.KILL }, token),
  },
  {
    call: 'Stop',
    needs: ['terminal.stop'],
    run: (h, token, id) => h.unary(terminals.stop, { terminal: ref(id) }, token),
  },
  {
    call: 'Kill',
    needs: ['terminal.kill'],
    run: (h, token, id) => h.unary(terminals.kill, { terminal: ref(id) }, token),
  },
  {
    call: 'Wait',
    needs: ['terminal.read'],
    exited: true,
    run: (h, token, id) =>
      h.unary(
        terminals.wait,
        { terminal: ref(id), condition: { case: 'exit', value: true } },
        token,
      ),
  },
  {
    call: 'DeleteTerminal',
    needs: ['terminal.create', 'terminal.kill'],
    exited: true,
    run: (h, token, id) => h.unary(terminals.deleteTerminal, { terminal: ref(id) }, token),
  },
];

const frames = [
  {
    frame: 'size in open',
    kind: AttachFrameKind.OPEN,
    needs: ['terminal.resize'],
    effect: 'resize',
    first: { size: { columns: 90, rows: 30 } },
    send: undefined,
  },
  {
    frame: 'input',
    kind: AttachFrameKind.INPUT,
    needs: ['terminal.write'],
    effect: 'send',
    first: {},
    send: { case: 'input', value: { data: Buffer.from('ls\n') } },
  },
  {
    frame: 'input that interrupts',
    kind: AttachFrameKind.INPUT,
    needs: ['terminal.write', 'terminal.signal'],
    effect: 'send',
    first: {},
    send: { case: 'input', value: { data: Buffer.from('\x03') } },
  },
  {
    frame: 'resize',
    kind: AttachFrameKind.RESIZE,
    needs: ['terminal.resize'],
    effect: 'resize',
    first: {},
    send: { case: 'resize', value: { size: { columns: 90, rows: 30 } } },
  },
  {
    frame: 'signal',
    kind: AttachFrameKind.SIGNAL,
    needs: ['terminal.signal'],
    effect: 'signal',
    first: {},
    send: { case: 'signal', value: { signal: Signal.TERM } },
  },
  {
    frame: 'signal SIGKILL',
    kind: AttachFrameKind.SIGNAL,
    needs: ['terminal.signal', 'terminal.kill'],
    effect: 'signal',
    first: {},
    send: { case: 'signal', value: { signal: Signal.KILL } },
  },
] as const;

function open(id: string, rest: object = {}) {
  const value = { terminal: ref(id), kind: AttachmentKind.SERVICE, ...rest };
  return { frame: { case: 'open', value } } as const;
}

async function finished(stream: { rest(): Promise<unknown>; readonly error: unknown }) {
  await stream.rest();
  if (stream.error) throw stream.error;
}

describe('capabilities, one at a time', () => {
  let harness: Harness;
  let made = 0;
  beforeAll(async () => {
    harness = await Harness.start();
  });
  afterAll(() => harness[Symbol.asyncDispose]());

  /** A fresh terminal, and nothing recorded of what was done before. */
  async function terminal(exited = false): Promise<string> {
    made += 1;
    const id = `t${made}`;
    const fake = await harness.supervisor.add({ id: id as Name });
    if (exited) await fake.exit();
    harness.supervisor.calls.length = 0;
    return id;
  }

  const cells = rows.flatMap((row) => capabilities.map((capability) => ({ ...row, capability })));

  it.each(cells.filter(({ needs, capability }) => needs.length === 1 && needs[0] === capability))(
    '$capability alone allows $call',
    async ({ run, exited, capability }) => {
      const id = await terminal(exited);
      await run(harness, await harness.token([{ actions: [capability] }]), id);
    },
  );

  it.each(cells.filter(({ needs, capability }) => needs.length > 1 || needs[0] !== capability))(
    '$capability alone does not allow $call, and the supervisor hears nothing of it',
    async ({ run, exited, capability }) => {
      const id = await terminal(exited);
      const error = await failureOf(
        run(harness, await harness.token([{ actions: [capability] }]), id),
      );
      expect(error.code).toBe(status.PERMISSION_DENIED);
      expect(detailsOf(error).info?.reason).toBe('GRANT_MISSING');
      expect(harness.supervisor.effects).toEqual([]);
    },
  );

  it.each(rows.filter(({ needs }) => needs.length > 1))(
    '$call passes with all that it needs in one grant',
    async ({ run, exited, needs }) => {
      const id = await terminal(exited);
      await run(harness, await harness.token([{ actions: needs }]), id);
    },
  );

  it.each(rows.filter(({ needs }) => needs.length > 1))(
    '$call does not pass with what it needs in two grants',
    async ({ run, exited, needs }) => {
      const id = await terminal(exited);
      const token = await harness.token(needs.map((need) => ({ actions: [need] })));
      const error = await failureOf(run(harness, token, id));
      expect(detailsOf(error).info?.reason).toBe('GRANT_MISSING');
      expect(harness.supervisor.effects).toEqual([]);
    },
  );

  it.each(capabilities)('%s alone lists what terminal.read lets it see', async (capability) => {
    const id = await terminal();
    const token = await harness.token([{ actions: [capability], resource: { terminal: id } }]);
    const { terminals: listed } = await harness.unary(terminals.listTerminals, {}, token);
    expect(listed.map((item) => item.ref?.id)).toEqual(capability === 'terminal.read' ? [id] : []);
    if (capability !== 'terminal.read') expect(harness.supervisor.effects).toEqual([]);
  });

  it.each(capabilities)('%s alone is told about the server', async (capability) => {
    const token = await harness.token([{ actions: [capability] }]);
    const info = await harness.unary(ServerService.method.getServerInfo, {}, token);
    expect(info.stateId).toBe('fake');
  });

  /** What came of one frame of an attachment that may read and do `actions`. */
  async function tryFrame(
    { first, send }: (typeof frames)[number],
    actions: readonly Capability[],
  ) {
    const id = await terminal();
    const stream = harness.bidi(
      terminals.attach,
      await harness.token([{ actions: ['terminal.read', ...actions] }]),
    );
    stream.send(open(id, first));
    if (send) stream.send({ frame: send });
    // Refused for whoever sends it, after whatever came before it.
    stream.send({ frame: { case: 'signal', value: { signal: Signal.UNSPECIFIED } } });
    const denied: { frame: AttachFrameKind; requiredAction: string }[] = [];
    for (let message = await stream.next(); message; message = await stream.next()) {
      if (message.event.case !== 'denied') continue;
      const { frame, frameIndex, requiredAction } = message.event.value;
      if (frameIndex === (send ? 2n : 1n)) break;
      denied.push({ frame, requiredAction });
    }
    const { effects } = harness.supervisor;
    stream.duplex.cancel();
    return { denied, effects };
  }

  const frameCells = frames.flatMap((frame) => [
    ...capabilities.map((capability) => ({ ...frame, cell: frame, actions: [capability] })),
    { ...frame, cell: frame, actions: [...frame.needs] },
  ]);
  const passes = ({ needs, actions }: (typeof frameCells)[number]) =>
    needs.every((need) => (actions as Capability[]).includes(need));

  it.each(frameCells.filter(passes))(
    'beside terminal.read, $actions allows $frame',
    async ({ cell, actions, effect }) => {
      const { denied, effects } = await tryFrame(cell, actions);
      expect(denied).toEqual([]);
      expect(effects).toContain(effect);
    },
  );

  it.each(frameCells.filter((cell) => !passes(cell)))(
    'beside terminal.read, $actions does not allow $frame: it is denied and the stream goes on',
    async ({ cell, actions, effect, kind, needs }) => {
      const { denied, effects } = await tryFrame(cell, actions);
      expect(denied).toHaveLength(1);
      expect(denied[0]?.frame).toBe(kind);
      expect(needs).toContain(denied[0]?.requiredAction);
      expect(effects).not.toContain(effect);
    },
  );
});
