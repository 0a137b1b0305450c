import { durationFromMs } from '@bufbuild/protobuf/wkt';
import type { Client } from '../../src/client/connect.js';
import {
  ScreenFormat,
  type SendResponse,
  type SendResult,
  WaitReason,
} from '../../src/gen/public/grantty/v1/session_service_pb.js';
import { type TerminalRef, TerminalState } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { plainBash } from '../support/plainBash.js';
import { startService, type TestService, type TokenSpec } from '../support/service.js';
import { watchAll } from '../support/streams.js';

type Event = SendResponse['event'];

/** All that a send gave: its text as one, and how it ended. */
interface Sent {
  readonly events: readonly Event[];
  readonly indexes: readonly bigint[];
  readonly sendId: string;
  readonly text: string;
  readonly result: SendResult;
}

async function read(stream: AsyncIterable<{ readonly event: Event }>): Promise<Sent> {
  const events: Event[] = [];
  for await (const { event } of stream) events.push(event);
  const deltas = events.flatMap((event) => (event.case === 'delta' ? [event.value] : []));
  const first = events[0];
  const last = events.at(-1);
  if (first?.case !== 'started') throw new Error(`it began with ${first?.case}`);
  if (last?.case !== 'result') throw new Error(`it ended with ${last?.case}`);
  return {
    events,
    indexes: deltas.map(({ index }) => index),
    sendId: first.value.sendId,
    text: deltas.map(({ text }) => text).join('') + last.value.viewport,
    result: last.value,
  };
}

describe('sessions over gRPC', () => {
  let service: TestService;
  let client: Client;

  beforeEach(async () => {
    service = await startService({ bash: plainBash });
    client = service.client();
  });
  afterEach(() => service[Symbol.asyncDispose]());

  async function spawn(rest: object = {}, by = client) {
    const { session, motd } = await by.sessions.spawn({ agent: 'coder', type: 'shell', ...rest });
    if (!session?.terminal) throw new Error('no session');
    return { session, motd, terminal: session.terminal };
  }

  const send = (terminal: TerminalRef, text: string, rest: object = {}) =>
    read(client.sessions.send({ terminal, text, ...rest }));

  /** Begins a send and leaves its stream once it has begun. */
  async function beginAndLeave(terminal: TerminalRef, text: string): Promise<string> {
    for await (const { event } of client.sessions.send({ terminal, text })) {
      if (event.case === 'started') return event.value.sendId;
    }
    throw new Error('it did not start');
  }

  const list = async (by = client) => (await by.sessions.listSessions({ agent: 'coder' })).sessions;

  const printed = (terminal: TerminalRef, value: string) =>
    client.terminals.wait({ terminal, condition: { case: 'pattern', value } });

  it("are an agent's loop: spawn, send, read what a person would see, close", async () => {
    expect((await client.sessions.listBackends({})).types).toEqual(['shell']);
    const { session, motd, terminal } = await spawn({ name: 'main', cwd: '/tmp' });
    expect(motd).toMatch(/[#$] $/);
    expect(session).toMatchObject({ agent: 'coder', session: 'default', name: 'main' });
    expect(session.status?.kind.case).toBe('running');

    const { text, result, events } = await send(terminal, 'echo $((6 * 7)) in $PWD');
    expect(events[0]?.case).toBe('started');
    expect(text).toMatch(/42 in \/tmp\n.*[#$] $/);
    expect(result.waitReason).toBe(WaitReason.STDIN_READ);
    const { terminal: record } = await client.terminals.getTerminal({ terminal });
    expect(result.lastSeq).toBe((record?.nextSeq ?? 0n) - 1n);

    const closed = await client.sessions.close({ terminal, reason: 'done' });
    expect(closed).toMatchObject({ closed: true, quiescent: true, survivors: [] });
    expect(await list()).toEqual([]);
    const again = client.sessions.close({ terminal });
    await expect(again).rejects.toMatchObject({ reason: 'TERMINAL_NOT_FOUND', code: 'NOT_FOUND' });
    expect((await watchAll(client, { terminal })).output.toString()).toContain('42 in /tmp');
  });

  it('give what is printed in numbered deltas, to be read again from any of them', async () => {
    const { terminal } = await spawn();
    const command = 'for i in 1 2 3; do echo line $i; sleep 0.4; done';
    const whole = await send(terminal, command);
    expect(whole.indexes.length).toBeGreaterThanOrEqual(3);
    expect(whole.indexes).toEqual(whole.indexes.map((_, at) => BigInt(at + 1)));
    expect(whole.text).toMatch(/line 1\nline 2\nline 3\n/);

    const { sendId } = whole;
    const rest = await read(client.sessions.readSend({ terminal, sendId, afterIndex: 1n }));
    expect(rest.indexes).toEqual(whole.indexes.slice(1));
    expect(whole.text.endsWith(rest.text)).toBe(true);
    expect(rest.result).toEqual(whole.result);
    const unknown = read(client.sessions.readSend({ terminal, sendId: 'no-such' }));
    await expect(unknown).rejects.toMatchObject({ reason: 'TERMINAL_NOT_FOUND' });
  });

  it('go on when the caller leaves, take one send at a time, and are interrupted by CancelSend alone', async () => {
    const { terminal } = await spawn();
    const sendId = await beginAndLeave(terminal, 'sleep 1000; echo slept $?');
    expect((await list())[0]?.activeSendId).toBe(sendId);
    await expect(send(terminal, 'echo no')).rejects.toMatchObject({
      reason: 'SEND_ACTIVE',
      code: 'ABORTED',
    });
    const reading = read(client.sessions.readSend({ terminal, sendId }));
    expect(await client.sessions.cancelSend({ terminal, sendId })).toMatchObject({
      cancelled: true,
    });
    const { text, result } = await reading;
    expect(result.waitReason).toBe(WaitReason.STDIN_READ);
    expect(text).not.toContain('slept 0');
    expect(await client.sessions.cancelSend({ terminal, sendId })).toMatchObject({
      cancelled: false,
    });
    expect((await send(terminal, 'echo $?')).text).toContain('130');
  });

  it('say why a send came back: time-out, then the prompt; the exit of the shell, with its code', async () => {
    const { terminal } = await spawn();
    const timeout = durationFromMs(300);
    const early = await send(terminal, 'sleep 1; echo awake', { timeout });
    expect(early.result.waitReason).toBe(WaitReason.TIMEOUT);
    const waited = await send(terminal, '', { submit: false });
    expect(waited.result.waitReason).toBe(WaitReason.STDIN_READ);
    expect(waited.text).toContain('awake');

    const last = await send(terminal, 'exit 3');
    expect(last.result.waitReason).toBe(WaitReason.SESSION_EXIT);
    const status = { case: 'exited', value: { exitCode: 3, signal: '' } };
    expect(last.result.sessionStatus?.kind).toMatchObject(status);
    const [listed] = await list();
    expect(listed?.status?.kind).toMatchObject(status);
    await expect(send(terminal, 'echo no')).rejects.toMatchObject({
      reason: 'TERMINAL_EXITED',
      code: 'FAILED_PRECONDITION',
    });
    await client.sessions.close({ terminal });
  });

  it('type the text of a repeated request once, and refuse its id for another text', async () => {
    const { terminal } = await spawn();
    const file = `${service.stateDir}/typed`;
    const text = `echo x >> ${file}; wc -l < ${file}`;
    const first = await send(terminal, text, { requestId: 'r1' });
    const again = await send(terminal, text, { requestId: 'r1' });
    expect(again).toEqual(first);
    await expect(send(terminal, 'echo other', { requestId: 'r1' })).rejects.toMatchObject({
      reason: 'REQUEST_ID_REUSED',
    });
    expect((await send(terminal, text, { requestId: 'r2' })).text).toMatch(/^2$/m);
  });

  it('are taken over by the next server: listed, named, sent to, typed once', async () => {
    const one = await spawn({ name: 'one' });
    const two = await spawn({ name: 'two', session: 'side' });
    const file = `${service.stateDir}/typed`;
    const text = `echo x >> ${file}; sleep 1; wc -l < ${file}`;
    const requestId = 'over-the-restart';
    const broken = send(one.terminal, text, { requestId }).catch((error: unknown) => error);
    await printed(one.terminal, 'sleep');
    await service.restartServer();
    await expect(broken).resolves.toMatchObject({ code: 'UNAVAILABLE' });
    client = service.client();

    expect(
      (await list()).map(({ name, session, type, terminal }) => [
        name,
        session,
        type,
        terminal?.id,
      ]),
    ).toEqual([
      ['one', 'default', 'shell', one.terminal.id],
      ['two', 'side', 'shell', two.terminal.id],
    ]);
    await expect(spawn({ name: 'one' })).rejects.toMatchObject({
      reason: 'TERMINAL_EXISTS',
      code: 'ALREADY_EXISTS',
    });
    const resumed = await send(one.terminal, text, { requestId });
    expect(resumed.result).toMatchObject({ waitReason: WaitReason.STDIN_READ, truncated: true });
    const begin = Date.now();
    const next = await send(one.terminal, `wc -l < ${file}`);
    expect(next.text).toMatch(/\n1\n/);
    expect(next.result).toMatchObject({ waitReason: WaitReason.STDIN_READ, truncated: false });
    // Told by the prompt's mark: silence would take 3 s.
    expect(Date.now() - begin).toBeLessThan(2_500);

    const { terminal } = two;
    const screen = await client.sessions.getScreen({ terminal });
    expect(screen.screen).toMatch(/[#$]/);
    expect((await client.sessions.close({ terminal })).closed).toBe(true);
    expect(await client.sessions.hasOwnerActivity({ agent: 'coder' })).toMatchObject({
      active: true,
    });
  });

  it('let nothing more be typed when the sender is revoked, and are free for others', async () => {
    const { terminal } = await spawn();
    const reading = 'stty raw -echo; echo raw; sleep 2; stty sane';
    await send(terminal, reading, { timeout: durationFromMs(500) });
    const token = await service.token();
    const sender = service.client(token);
    const text = 'x'.repeat(60_000);
    const sending = read(sender.sessions.send({ terminal, text })).catch((error: unknown) => error);
    let sendId = '';
    while (sendId === '') sendId = (await list())[0]?.activeSendId ?? '';
    const reader = read(client.sessions.readSend({ terminal, sendId })).catch((error) => error);
    await sender.grants.revoke({});
    expect(await sending).toMatchObject({ reason: 'GRANT_REVOKED' });
    expect(await reader).toMatchObject({ reason: 'TERMINAL_NOT_FOUND' });
    const gone = read(client.sessions.readSend({ terminal, sendId }));
    await expect(gone).rejects.toMatchObject({ reason: 'TERMINAL_NOT_FOUND' });
    await send(terminal, '', { submit: false });
  });

  it('go on with the new process when their terminal is started again, also at the next server', async () => {
    const { terminal } = await spawn({ name: 'again' });
    await send(terminal, 'x=old; cd /usr; exit 3');
    await client.terminals.startTerminal({ terminal });
    const { text, result } = await send(terminal, 'echo "x=$x in $PWD"');
    expect(text).toMatch(/\nx= in (?!\/usr).*\n/);
    expect(result.waitReason).toBe(WaitReason.STDIN_READ);
    const [listed] = await list();
    expect(listed).toMatchObject({ name: 'again', status: { kind: { case: 'running' } } });
    const { terminal: record } = await client.terminals.getTerminal({ terminal });
    expect(listed?.pid).toBe(record?.pid);
    const last = await send(terminal, 'exit 4');
    const exited = { case: 'exited', value: { exitCode: 4 } };
    expect(last.result.sessionStatus?.kind).toMatchObject(exited);

    await service.restartServer();
    client = service.client();
    expect(await list()).toEqual([]);
    await client.terminals.startTerminal({ terminal });
    expect((await list()).map(({ name }) => name)).toEqual(['again']);
    expect((await send(terminal, 'echo there')).text).toMatch(/\nthere\n/);
    expect((await client.sessions.close({ terminal })).closed).toBe(true);
  });

  it('end with their terminal: a deleted one leaves no session behind', async () => {
    const { terminal } = await spawn({ name: 'gone' });
    await send(terminal, 'exit');
    await client.terminals.deleteTerminal({ terminal });
    expect(await list()).toEqual([]);
    expect(await client.sessions.hasOwnerActivity({ agent: 'coder' })).toMatchObject({
      active: false,
    });
    await spawn({ name: 'gone' });
  });

  it('leave nothing when the spawn is cancelled', async () => {
    await using slow = await startService();
    const leaver = slow.client();
    const leave = new AbortController();
    const env = { PROMPT_COMMAND: 'sleep 1000' };
    const spawning = leaver.sessions.spawn(
      { agent: 'coder', type: 'shell', env },
      { signal: leave.signal },
    );
    const stop = new AbortController();
    for await (const event of leaver.watchTerminals({}, { signal: stop.signal })) {
      if (event.case === 'changed') break;
    }
    const watcher = slow.client();
    expect(await watcher.sessions.hasOwnerActivity({ agent: 'coder' })).toMatchObject({
      active: true,
    });
    leave.abort(new Error('enough'));
    await expect(spawning).rejects.toThrow('enough');
    for await (const event of watcher.watchTerminals()) {
      if (event.case === 'removed') break;
      if (event.case !== 'snapshotEnd') continue;
      if ((await watcher.terminals.listTerminals({})).terminals.length === 0) break;
    }
    expect((await watcher.terminals.listTerminals({})).terminals).toEqual([]);
    expect((await watcher.sessions.listSessions({ agent: 'coder' })).sessions).toEqual([]);
  });

  describe('to whom constraints apply', () => {
    const shell = [plainBash];
    const refused: readonly (readonly [string, TokenSpec, object])[] = [
      ['another command', { constraints: { commands: [['/bin/sh']] } }, {}],
      ['a directory outside', { constraints: { cwd_under: ['/usr'] } }, { cwd: '/tmp' }],
      ['a variable', { constraints: { env_allow: [] } }, { env: { FOO: 'x' } }],
      ['another kind of id', { resource: { terminal: 'build-*' } }, {}],
      ['another agent', { resource: { agent: 'other' } }, {}],
    ];

    it.each(refused)('spawn is refused: %s', async (_, spec, request) => {
      const spawning = spawn(request, service.client(spec));
      await expect(spawning).rejects.toMatchObject({ reason: 'GRANT_MISSING' });
      expect((await client.terminals.listTerminals({})).terminals).toEqual([]);
    });

    it('spawn is allowed within all of them, up to the budget of live terminals', async () => {
      const spec = {
        resource: { terminal: 'session-*' },
        constraints: {
          commands: [shell],
          cwd_under: ['/tmp'],
          env_allow: ['FOO'],
          max_terminals: 1,
        },
      };
      const bound = service.client(spec);
      const { terminal } = await spawn({ cwd: '/tmp', env: { FOO: 'bar' } }, bound);
      expect((await send(terminal, 'echo $FOO')).text).toContain('bar');
      await expect(spawn({ cwd: '/tmp' }, bound)).rejects.toMatchObject({
        reason: 'QUOTA_TERMINALS',
      });
      await bound.sessions.close({ terminal });
      await spawn({ cwd: '/tmp' }, bound);
    });

    it('what may be spawned may be started again, and no more than that', async () => {
      const bound = service.client({ constraints: { commands: [shell], env_allow: ['FOO'] } });
      const { terminal } = await spawn({ env: { FOO: 'bar' } }, bound);
      await send(terminal, 'exit');
      for (const constraints of [{ commands: [['/bin/sh']] }, { env_allow: [] }]) {
        const other = service.client({ constraints });
        await expect(other.terminals.startTerminal({ terminal })).rejects.toMatchObject({
          reason: 'GRANT_MISSING',
        });
      }
      await bound.terminals.startTerminal({ terminal });
      expect((await send(terminal, 'echo $FOO')).text).toContain('bar');
    });

    it('a text that interrupts needs terminal.signal', async () => {
      const { terminal } = await spawn();
      const writer = service.client({ actions: ['terminal.read', 'terminal.write'] });
      const interrupting = read(writer.sessions.send({ terminal, text: '\x03' }));
      await expect(interrupting).rejects.toMatchObject({
        reason: 'GRANT_MISSING',
        metadata: { required_action: 'terminal.signal' },
      });
      await read(writer.sessions.send({ terminal, text: 'true' }));
    });
  });

  it('show screens, pages and what is found of any terminal, running or exited', async () => {
    const terminal = { id: 'plain' };
    const script =
      "printf '\\033]2;title\\007'; seq 1 600; printf '\\033[1mbold\\033[0m \u6f22\u5b57'";
    const command = ['sh', '-c', script];
    await client.terminals.createTerminal({ agent: 'coder', ...terminal, command });
    await client.terminals.wait({ terminal, condition: { case: 'exit', value: true } });
    const { terminal: record } = await client.terminals.getTerminal({ terminal });
    expect(record?.state).toBe(TerminalState.EXITED);

    const screen = await client.sessions.getScreen({ terminal });
    expect(screen).toMatchObject({
      size: { columns: 80, rows: 24 },
      cursorColumn: 9,
      cursorRow: 23,
      cursorVisible: true,
      alternateScreen: false,
      windowTitle: 'title',
      throughSeq: (record?.nextSeq ?? 0n) - 1n,
    });
    expect(screen.screen.split('\n').slice(-3)).toEqual(['600', 'bold \u6f22\u5b57', '']);
    const ansi = await client.sessions.getScreen({ terminal, format: ScreenFormat.ANSI });
    expect(ansi.screen).toContain('\x1b[1mbold');

    const page = await client.sessions.readScrollback({ terminal, offset: 1, count: 2 });
    expect(page).toMatchObject({ text: '599\n600\n', lineBegin: 598, lineEnd: 600 });
    expect(page).toMatchObject({ totalLines: 601, truncated: false });
    const whole = await client.sessions.readScrollback({ terminal });
    expect(whole.text.split('\n')).toHaveLength(501);

    const found = await client.sessions.findText({ terminal, pattern: '^59[89]$|\u5b57' });
    expect(found.matches.map(({ line, column, matched }) => [line, column, matched])).toEqual([
      [600, 7, '\u5b57'],
      [598, 0, '599'],
      [597, 0, '598'],
    ]);
    const some = await client.sessions.findText({ terminal, pattern: '9', maxMatches: 1 });
    expect(some).toMatchObject({ truncated: true, totalLines: 601 });

    const refused = await Promise.allSettled([
      client.sessions.findText({ terminal, pattern: '(' }),
      client.sessions.findText({ terminal, pattern: 'x', maxMatches: 1001 }),
      client.sessions.readScrollback({ terminal, count: 501 }),
      client.sessions.getScreen({ terminal, format: ScreenFormat.UNSPECIFIED }),
    ]);
    for (const outcome of refused) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { reason: 'FIELD_INVALID' } });
    }
  });

  it('are none where a plain terminal is sent to', async () => {
    const terminal = { id: 'plain' };
    await client.terminals.createTerminal({ agent: 'coder', ...terminal, command: ['cat'] });
    const sending = read(client.sessions.send({ terminal, text: 'x' }));
    await expect(sending).rejects.toMatchObject({ reason: 'TERMINAL_NOT_FOUND' });
    expect(await list()).toEqual([]);
  });
});
