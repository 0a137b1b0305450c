import { openSessions, type Sessions } from '../../src/app/sessions.js';
import { AgentScope } from '../../src/session/agent.js';
import type { ShellSend } from '../../src/session/shellSend.js';
import type { Supervisor } from '../../src/supervisor/api.js';
import { plainBash } from '../support/plainBash.js';
import { name, owner, startRegistry, type TestRegistry } from '../support/registry.js';
import { workerEntry } from '../support/workerEntry.js';

/** Cannot tell who waits for input, so that nothing but a mark or silence says that a shell is ready. */
function blind(supervisor: Supervisor): Supervisor {
  const state = { shellInForeground: true, waitingForInput: 'unknown' } as const;
  return new Proxy(supervisor, {
    get(target, key) {
      if (key === 'foreground') return async () => state;
      const value: unknown = Reflect.get(target, key);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

describe('a session that an earlier process left behind', () => {
  let registry: TestRegistry;
  let earlier: Sessions;
  let later: Sessions;
  const agent = new AgentScope(owner, name('coder'));

  beforeEach(async () => {
    registry = await startRegistry();
    earlier = openSessions({ ...registry, workerEntry, bash: plainBash });
    const supervisor = blind(registry.supervisor);
    later = openSessions({ ...registry, supervisor, workerEntry, bash: plainBash });
  });
  afterEach(async () => {
    await later[Symbol.asyncDispose]();
    await registry[Symbol.asyncDispose]();
  });

  /** A session of the earlier process, which has ended since. */
  async function left(resource: object = {}, text?: string) {
    const { service } = earlier;
    const { sessionId: id } = await service.spawn(agent, { type: 'shell', resource });
    if (text !== undefined) {
      const send = service.startSend(agent, id, { text, submit: true }) as ShellSend;
      // The shell is at its prompt again, waits for input in what it runs, or has ended.
      await send.done;
    }
    await earlier[Symbol.asyncDispose]();
    const terminal = await registry.supervisor.get({ owner, id: name(id) });
    if (!terminal) throw new Error('there is no terminal');
    return { id, terminal };
  }

  const adopt = ({ terminal }: Awaited<ReturnType<typeof left>>) =>
    later.service.spawn(agent, { type: 'shell', name: 'kept', resource: { adopt: terminal } });

  const sendTo = (id: Awaited<ReturnType<typeof left>>['id'], text: string) =>
    later.service.startSend(agent, id, { text, submit: true }).done;

  it('goes on under its id: the shell’s prompt is still known by its mark', async () => {
    const known = await left({}, 'x=kept');
    const { sessionId, motd, status } = await adopt(known);
    expect({ sessionId, motd, status }).toEqual({
      sessionId: known.id,
      motd: '',
      status: { kind: 'running' },
    });
    const { viewport, waitReason } = await sendTo(known.id, 'echo "$x"');
    expect(viewport).toMatch(/^echo "\$x"\nkept\n/);
    expect(waitReason).toBe('stdin_read');
    expect(later.service.read(agent, known.id).text).toContain('x=kept');
    expect(await later.service.kill(agent, known.id)).toBe(true);
  });

  it('is taken over while its program runs, and ends with it', async () => {
    const known = await left({}, 'read x; exit 3');
    await adopt(known);
    expect(await sendTo(known.id, 'go')).toMatchObject({
      waitReason: 'session_exit',
      sessionStatus: { kind: 'exited', exitCode: 3 },
    });
  });

  it('of another command has no marks, and is waited for by the other signs', async () => {
    const known = await left({ command: ['cat'] });
    await adopt(known);
    expect(await sendTo(known.id, 'meow')).toMatchObject({ waitReason: 'inferred_idle' });
  });

  it('does not take the exit of an earlier instance for its own', async () => {
    const { supervisor } = registry;
    const known = await left({}, 'exit');
    const key = { owner, id: known.terminal.record.id };
    await supervisor.exited(key, AbortSignal.timeout(10_000));
    const terminal = await supervisor.start(key, {});
    await adopt({ ...known, terminal });
    expect(later.service.list(agent)[0]?.status).toEqual({ kind: 'running' });
    expect((await sendTo(known.id, 'echo again')).viewport).toContain('again');
  });

  it('lives on when it cannot be taken over', async () => {
    const known = await left();
    const cancelled = new AbortController();
    const adopting = later.service.spawn(
      agent,
      { type: 'shell', resource: { adopt: known.terminal } },
      cancelled.signal,
    );
    cancelled.abort(new Error('changed my mind'));
    await expect(adopting).rejects.toThrow('changed my mind');
    const { supervisor } = registry;
    const now = await supervisor.get({ owner, id: known.terminal.record.id });
    expect(now?.record.state).toBe('running');
    expect(now?.attachments).toHaveLength(1);
  });
});
