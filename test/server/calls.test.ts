/** What the unary calls do, once they are allowed. */
import { create as fromInitOf, type MessageInitShape, toBinary, toJson } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import type { Name } from '../../src/core/names.js';
import { ServerService } from '../../src/gen/public/grantty/v1/server_service_pb.js';
import {
  AttachmentKind,
  AttachmentMode,
  ExitReason,
  Signal,
  TerminalState,
} from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { GetTerminalResponseSchema } from '../../src/gen/public/grantty/v1/terminal_service_pb.js';
import type { CreateSpec, WriteSpec } from '../../src/supervisor/api.js';
import { detailsOf, failureOf, Harness, terminals } from './harness.js';

const ref = (id: string) => ({ terminal: { owner: '1000', id } });

describe('unary calls', () => {
  let harness: Harness;
  let token: string;
  beforeEach(async () => {
    harness = await Harness.start();
    token = await harness.token();
  });
  afterEach(() => harness[Symbol.asyncDispose]());

  const create = (
    request: MessageInitShape<typeof terminals.createTerminal.input>,
    by: string = token,
  ) => harness.unary(terminals.createTerminal, request, by);
  const created = () => harness.supervisor.calls.find(({ method }) => method === 'create')?.args[0];

  async function refusal(call: Promise<unknown>) {
    const error = await failureOf(call);
    const details = detailsOf(error);
    return {
      code: error.code,
      reason: details.info?.reason,
      fields: details.badRequest?.fieldViolations.map(({ field }) => field),
      details,
    };
  }

  describe('CreateTerminal', () => {
    it('makes what the request says', async () => {
      const by = await harness.token([{ id: 'maker', constraints: { env_allow: ['MY_*'] } }]);
      const { terminal } = await create(
        {
          agent: 'coder',
          session: 's1',
          id: 'mine',
          command: ['/bin/echo', 'hi'],
          cwd: '/work',
          env: { MY_OPTION: '1', LANG: 'C' },
          size: { columns: 120, rows: 40 },
          title: 'Title',
          labels: { tier: 'test' },
          name: 'shown',
        },
        by,
      );
      expect(created()).toMatchObject({
        tuple: { owner: '1000', agent: 'coder', session: 's1', id: 'mine' },
        command: ['/bin/echo', 'hi'],
        cwd: '/work',
        env: { MY_OPTION: '1', LANG: 'C' },
        size: { cols: 120, rows: 40 },
        onExit: 'leave',
        createdBy: { subject: 'alice', grants: ['maker'] },
      });
      expect(terminal).toMatchObject({
        ref: { owner: '1000', id: 'mine' },
        title: 'Title',
        labels: { tier: 'test' },
        name: 'shown',
        createdBy: { subject: 'alice', grantIds: ['maker'] },
      });
    });

    it('refuses a map with the key __proto__, which would be lost, and not the text elsewhere', async () => {
      const path = '/grantty.v1.TerminalService/CreateTerminal';
      const bytes = (request: MessageInitShape<typeof terminals.createTerminal.input>) =>
        Buffer.from(
          toBinary(
            terminals.createTerminal.input,
            fromInitOf(terminals.createTerminal.input, request),
          ),
        );
      const lost = bytes({ agent: 'a', labels: { placehold: 'x' } });
      lost.write('__proto__', lost.indexOf('placehold'), 'latin1');
      expect(await refusal(harness.raw(path, lost, token))).toMatchObject({
        code: status.INVALID_ARGUMENT,
        reason: 'FIELD_INVALID',
      });
      expect(created()).toBeUndefined();
      await create({ agent: 'a', command: ['echo', '__proto__'], labels: { k: '__proto__' } });
      expect(created()).toMatchObject({ command: ['echo', '__proto__'] });
    });

    it("fills in session, id, size and the owner's shell and home", async () => {
      await create({ agent: 'coder' });
      expect(created()).toMatchObject({
        tuple: { owner: '1000', session: 'default', id: 'terminal-coder-default' },
        command: ['/bin/default-shell'],
        cwd: '/home/default',
        size: { cols: 80, rows: 24 },
      });
    });

    it('holds the defaults against the constraints of the grant as well', async () => {
      const by = await harness.token([{ constraints: { commands: [['/bin/other']] } }]);
      expect((await refusal(create({ agent: 'coder' }, by))).reason).toBe('GRANT_MISSING');
      expect(created()).toBeUndefined();
    });

    it('passes the allowed directories on, where symbolic links can be seen', async () => {
      const by = await harness.token([{ constraints: { cwd_under: ['/work'] } }]);
      await create({ agent: 'coder', command: ['sh'], cwd: '/work/x' }, by);
      expect((created() as CreateSpec).cwdUnder).toEqual(['/work']);
      const outside = create({ agent: 'coder', command: ['sh'], cwd: '/etc', id: 'x' }, by);
      expect((await refusal(outside)).reason).toBe('GRANT_MISSING');
    });

    it.each([
      ['agent', { agent: '' }],
      ['id', { agent: 'a'.repeat(60) }],
      ['command', { agent: 'a', command: [''] }],
      ['command', { agent: 'a', command: Array(257).fill('x') }],
      ['command', { agent: 'a', command: ['x'.repeat(128 * 1024)] }],
      ['command', { agent: 'a', command: ['a\u0000b'] }],
      ['env', { agent: 'a', env: { CTX_AGENT: 'x' } }],
      ['env', { agent: 'a', env: { '1x': 'x' } }],
      ['size.rows', { agent: 'a', size: { columns: 1, rows: 1001 } }],
      ['title', { agent: 'a', title: 'x'.repeat(257) }],
      ['name', { agent: 'a', name: 'x'.repeat(257) }],
      ['labels', { agent: 'a', labels: { '': 'x' } }],
      ['labels', { agent: 'a', labels: { k: 'x'.repeat(256) } }],
      [
        'labels',
        { agent: 'a', labels: Object.fromEntries(Array.from({ length: 33 }, (_, i) => [i, ''])) },
      ],
      ['on_exit', { agent: 'a', onExit: 0 }],
      ['on_exit', { agent: 'a', onExit: 9 }],
      ['request_id', { agent: 'a', requestId: 'ü' }],
      ['request_id', { agent: 'a', requestId: 'x'.repeat(129) }],
    ])('refuses a bad %s before anything is made', async (field, request) => {
      const refused = await refusal(create(request));
      expect(refused).toMatchObject({ code: status.INVALID_ARGUMENT, fields: [field] });
      expect(created()).toBeUndefined();
    });

    it('refuses a relative directory as one', async () => {
      expect((await refusal(create({ agent: 'a', cwd: 'x' }))).reason).toBe('CWD_INVALID');
    });

    it('marks a repeated request as the same, in whatever order its maps come', async () => {
      const request = { agent: 'a', requestId: 'r1', labels: { a: '1', b: '2' } };
      await create(request);
      await create({ ...request, labels: { b: '2', a: '1' } });
      const [first, second] = harness.supervisor.calls
        .filter(({ method }) => method === 'create')
        .map(({ args }) => (args[0] as CreateSpec).request);
      expect(first).toBeDefined();
      expect(second).toEqual(first);
    });

    it('tells apart the same request id of two subjects and of two bodies', async () => {
      const bob = await harness.token([{}], { subject: 'bob' });
      await create({ agent: 'a', requestId: 'r1' });
      await failureOf(create({ agent: 'a', requestId: 'r1' }, bob));
      await create({ agent: 'a', requestId: 'r1', title: 'other' });
      const [mine, his, changed] = harness.supervisor.calls
        .filter(({ method }) => method === 'create')
        .map(({ args }) => (args[0] as CreateSpec).request);
      expect(his?.key).not.toBe(mine?.key);
      expect(changed?.key).toBe(mine?.key);
      expect(changed?.bodyHash).not.toBe(mine?.bodyHash);
    });
  });

  describe('max_terminals of a grant', () => {
    const limited = (max: number, rest: object = {}) =>
      harness.token([{ id: 'few', constraints: { max_terminals: max } }], rest);

    it('counts live terminals of the grant, over tokens, and no others', async () => {
      await harness.supervisor.add({ id: 'not-mine' as Name });
      await create({ agent: 'a', id: 'x1' }, await limited(2));
      await create({ agent: 'a', id: 'x2' }, await limited(2));
      const refused = await refusal(create({ agent: 'a', id: 'x3' }, await limited(2)));
      expect(refused).toMatchObject({
        code: status.RESOURCE_EXHAUSTED,
        reason: 'QUOTA_TERMINALS',
      });
      expect(refused.details.quota?.violations).toHaveLength(1);
      await create({ agent: 'a', id: 'x3' }, await limited(2, { subject: 'bob' }));
    });

    it('gives room again when one has ended', async () => {
      await create({ agent: 'a', id: 'x1' }, await limited(1));
      await harness.supervisor.terminals.get('1000/x1')?.exit();
      await create({ agent: 'a', id: 'x2' }, await limited(1));
    });

    it('lets no burst of calls through together', async () => {
      const by = await limited(3);
      const calls = Array.from({ length: 10 }, (_, i) => create({ agent: 'a', id: `x${i}` }, by));
      const settled = await Promise.allSettled(calls);
      expect(settled.filter((call) => call.status === 'fulfilled')).toHaveLength(3);
    });

    it('allows none at 0', async () => {
      const refused = await refusal(create({ agent: 'a' }, await limited(0)));
      expect(refused.reason).toBe('QUOTA_TERMINALS');
    });

    it('answers a repeated request though the limit is reached', async () => {
      const by = await limited(1);
      await create({ agent: 'a', requestId: 'r' }, by);
      await create({ agent: 'a', requestId: 'r' }, by);
    });
  });

  describe('StartTerminal', () => {
    it('counts against who starts, whoever created it', async () => {
      const few = (subject: string) =>
        harness.token([{ id: 'few', constraints: { max_terminals: 1 } }], { subject });
      const [alice, bob] = [await few('alice'), await few('bob')];
      const start = (id: string, by: string) => harness.unary(terminals.startTerminal, ref(id), by);
      await create({ agent: 'a', id: 'x1' }, alice);
      await harness.supervisor.terminals.get('1000/x1')?.exit();
      const started = await start('x1', bob);
      expect(started.terminal?.createdBy?.subject).toBe('bob');
      expect((await refusal(create({ agent: 'a', id: 'x2' }, bob))).reason).toBe('QUOTA_TERMINALS');
      await create({ agent: 'a', id: 'x3' }, alice);
      await harness.supervisor.terminals.get('1000/x1')?.exit();
      expect((await refusal(start('x1', alice))).reason).toBe('QUOTA_TERMINALS');
    });

    it('holds what is stored against the grant of the caller', async () => {
      await (await harness.supervisor.add({ id: 't1' as Name, command: ['/bin/sh'] })).exit();
      const start = (by: string) => harness.unary(terminals.startTerminal, ref('t1'), by);
      const other = await harness.token([{ constraints: { commands: [['/bin/ls']] } }]);
      expect((await refusal(start(other))).reason).toBe('GRANT_MISSING');
      harness.supervisor.storedEnv = { SECRET_OPTION: '1' };
      expect((await refusal(start(token))).reason).toBe('GRANT_MISSING');
      const allowed = await harness.token([
        { constraints: { commands: [['/bin/sh']], env_allow: ['SECRET_*'] } },
      ]);
      expect((await start(allowed)).terminal?.instance).toBe(2);
    });
  });

  describe('Write, Resize, Signal', () => {
    beforeEach(async () => {
      await harness.supervisor.add({ id: 't1' as Name });
    });
    const write = (data: string | Uint8Array, by = token) =>
      harness.unary(terminals.write, { ...ref('t1'), data: Buffer.from(data) }, by);

    it('answers a write with the place in the log from before it', async () => {
      await harness.supervisor.terminals.get('1000/t1')?.print('a', 'b');
      expect(await write('ls\n')).toMatchObject({ lastSeq: 2n, written: 3 });
    });

    it('passes on a lease that ends with the token or, if earlier, with the grant', async () => {
      await write('x');
      const grantEnd = Math.floor(harness.clock.now() / 1000) + 5;
      await write('x', await harness.token([{ constraints: { expires_at: grantEnd } }]));
      const leases = harness.supervisor.calls
        .filter(({ method }) => method === 'write')
        .map(({ args }) => (args[1] as WriteSpec).lease.notAfter);
      expect(leases).toEqual([harness.clock.now() + 600_000, grantEnd * 1000]);
    });

    it.each([0, 64 * 1024 + 1])('refuses %d bytes', async (length) => {
      const refused = await refusal(write(Buffer.alloc(length, 'x')));
      expect(refused).toMatchObject({ code: status.INVALID_ARGUMENT, fields: ['data'] });
      expect(harness.supervisor.effects).toEqual([]);
    });

    it.each(['\x03', 'a\x1cb', '\x1a'])(
      'refuses %j whole without terminal.signal',
      async (text) => {
        const by = await harness.token([{ actions: ['terminal.write'] }]);
        const refused = await refusal(write(text, by));
        expect(refused.reason).toBe('GRANT_MISSING');
        expect(refused.details.info?.metadata.required_action).toBe('terminal.signal');
        await write(
          text,
          await harness.token([
            { actions: ['terminal.write'], constraints: { signal_bytes: 'allow' } },
          ]),
        );
      },
    );

    it('holds input to the rate of the grant and says when to come back', async () => {
      const by = await harness.token([{ constraints: { write_bytes_per_second: 100 } }]);
      await write('x'.repeat(100), by);
      const refused = await refusal(write('x'.repeat(50), by));
      expect(refused).toMatchObject({ code: status.RESOURCE_EXHAUSTED, reason: 'RATE_LIMITED' });
      expect(refused.details.retry?.retryDelay).toMatchObject({ seconds: 0n, nanos: 5e8 });
      harness.clock.advance(500);
      await write('x'.repeat(50), by);
    });

    it('tells that the process has gone, with what it failed on', async () => {
      await harness.supervisor.terminals.get('1000/t1')?.exit();
      for (const call of [
        () => write('x'),
        () =>
          harness.unary(terminals.resize, { ...ref('t1'), size: { columns: 9, rows: 9 } }, token),
        () => harness.unary(terminals.signal, { ...ref('t1'), signal: Signal.INT }, token),
      ]) {
        const refused = await refusal(call());
        expect(refused).toMatchObject({
          code: status.FAILED_PRECONDITION,
          reason: 'TERMINAL_EXITED',
        });
        expect(refused.details.precondition?.violations[0]?.type).toBe('TERMINAL_EXITED');
      }
    });

    it.each([Signal.UNSPECIFIED, 99])('refuses signal number %d of the enum', async (signal) => {
      const refused = await refusal(
        harness.unary(terminals.signal, { ...ref('t1'), signal }, token),
      );
      expect(refused.fields).toEqual(['signal']);
    });

    it('refuses a signal that the grant leaves out', async () => {
      const by = await harness.token([{ constraints: { signals: ['SIGINT'] } }]);
      const signal = (which: Signal) =>
        harness.unary(terminals.signal, { ...ref('t1'), signal: which }, by);
      expect(await signal(Signal.INT)).toMatchObject({ targetPgid: 4242 });
      expect((await refusal(signal(Signal.TERM))).reason).toBe('GRANT_MISSING');
    });
  });

  describe('GetTerminal', () => {
    it('shows an exit code of 0 as present', async () => {
      await (await harness.supervisor.add({ id: 't1' as Name })).exit({ exitCode: 0 });
      const reply = await harness.unary(terminals.getTerminal, ref('t1'), token);
      expect(reply.terminal).toMatchObject({
        state: TerminalState.EXITED,
        exitStatus: { exitCode: 0, reason: ExitReason.EXITED },
      });
      expect(reply.terminal?.pid).toBeUndefined();
      expect(JSON.stringify(toJson(GetTerminalResponseSchema, reply))).toContain('"exitCode":0');
    });

    it('shows a lost supervisor by an absent exit code', async () => {
      const terminal = await harness.supervisor.add({ id: 't1' as Name });
      await terminal.exit({ reason: 'supervisor-lost' });
      const reply = await harness.unary(terminals.getTerminal, ref('t1'), token);
      expect(reply.terminal?.exitStatus?.exitCode).toBeUndefined();
      expect(reply.terminal?.exitStatus?.reason).toBe(ExitReason.SUPERVISOR_LOST);
    });

    it.each([
      ['supervisor-stopped', ExitReason.SUPERVISOR_STOPPED],
      ['idle-limit', ExitReason.IDLE_LIMIT],
      ['lifetime-limit', ExitReason.LIFETIME_LIMIT],
      ['of another version', ExitReason.SIGNALED],
      ['constructor', ExitReason.SIGNALED],
    ])('shows an end for the reason "%s" beside its exit code', async (reason, shown) => {
      const terminal = await harness.supervisor.add({ id: 't1' as Name });
      await terminal.exit({ exitCode: 143, signal: 'SIGTERM', reason });
      const reply = await harness.unary(terminals.getTerminal, ref('t1'), token);
      expect(reply.terminal?.exitStatus).toMatchObject({ exitCode: 143, reason: shown });
    });

    it('lists who is attached and who watches', async () => {
      await harness.supervisor.add({ id: 't1' as Name });
      const kind = AttachmentKind.HUMAN;
      const watcher = harness.serverStream(terminals.watch, { ...ref('t1'), kind }, token);
      await watcher.next();
      const attached = harness.bidi(terminals.attach, token);
      const open = { ...ref('t1'), kind: AttachmentKind.AGENT };
      attached.send({ frame: { case: 'open', value: open } });
      await attached.next();
      const { terminal } = await harness.unary(terminals.getTerminal, ref('t1'), token);
      expect(terminal?.attachments).toMatchObject([
        { kind: AttachmentKind.AGENT, subject: 'alice', mode: AttachmentMode.READ },
        { kind: AttachmentKind.HUMAN, subject: 'alice', mode: AttachmentMode.READ },
      ]);
      watcher.call.cancel();
      attached.call.cancel();
    });
  });

  describe('UpdateTerminal and DeleteTerminal', () => {
    it('changes what is given and nothing else', async () => {
      await harness.supervisor.add({ id: 't1' as Name, title: 'old', labels: { a: '1' } });
      const update = (rest: object) =>
        harness.unary(terminals.updateTerminal, { ...ref('t1'), ...rest }, token);
      expect((await update({ title: '' })).terminal).toMatchObject({
        title: '',
        labels: { a: '1' },
      });
      expect((await update({ labels: { entries: {} } })).terminal).toMatchObject({ labels: {} });
    });

    it('deletes the incarnation that is meant and no other', async () => {
      await (await harness.supervisor.add({ id: 't1' as Name })).exit();
      const remove = (uid: string) =>
        harness.unary(terminals.deleteTerminal, { ...ref('t1'), uid }, token);
      expect((await refusal(remove('another'))).code).toBe(status.NOT_FOUND);
      await remove('uid-1');
      expect(harness.supervisor.terminals.size).toBe(0);
    });
  });

  describe('Stop and Kill', () => {
    it('answer with the terminal afterwards', async () => {
      await harness.supervisor.add({ id: 't1' as Name });
      const grace = durationFromMs(0);
      const reply = await harness.unary(terminals.stop, { ...ref('t1'), grace }, token);
      expect(reply).toMatchObject({
        quiescent: true,
        quiescenceCertain: false,
        terminal: { state: TerminalState.EXITED, exitStatus: { exitCode: 143, signal: 'SIGTERM' } },
      });
    });

    it('refuse a grace of more than 60 seconds', async () => {
      await harness.supervisor.add({ id: 't1' as Name });
      const grace = durationFromMs(60_001);
      const refused = await refusal(harness.unary(terminals.stop, { ...ref('t1'), grace }, token));
      expect(refused.fields).toEqual(['grace']);
    });
  });

  it('tells its limits and services', async () => {
    const info = await harness.unary(ServerService.method.getServerInfo, {}, token);
    expect(info.limits).toMatchObject({ inputFrameBytes: 65536, messageBytes: 262144 });
    expect(info.services).toContain('grantty.v1.TerminalService');
  });
});
