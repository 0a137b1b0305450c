import { AgentScope } from '../../src/session/agent.js';
import { TerminalBackendCleanupError } from '../../src/session/sessionError.js';
import type { TerminalSessionId, TerminalSpawnRequest } from '../../src/session/sessionTypes.js';
import { TerminalSessionService } from '../../src/session/terminalSessionService.js';
import { FakeBackend, gate, settledResult } from './fakeBackend.js';

const request: TerminalSpawnRequest = { type: 'fake' };
const text = { text: 'ls', submit: true };

function newAgent(agent = 'coder'): AgentScope {
  return new AgentScope('1000', agent);
}

function setUp() {
  const service = new TerminalSessionService();
  const backend = new FakeBackend();
  const unregister = service.registerBackend(backend);
  return { service, backend, unregister, owner: newAgent() };
}

const failing = (code: string) => expect.objectContaining({ code });

describe('an owner', () => {
  it('has names that files can be put under, and is refused others', () => {
    expect(() => new AgentScope('../etc', 'coder')).toThrow(/owner: must be 1-64 bytes/);
    expect(() => new AgentScope('1000', 'two words')).toThrow(/agent: must be 1-64 bytes/);
  });
});

describe('registerBackend', () => {
  it('refuses a second backend of a type as DUPLICATE_BACKEND', () => {
    const { service } = setUp();
    expect(() => service.registerBackend(new FakeBackend())).toThrow(failing('DUPLICATE_BACKEND'));
  });

  it('refuses an empty type', () => {
    const { service } = setUp();
    expect(() => service.registerBackend(new FakeBackend(''))).toThrow(TypeError);
  });

  it('gives a disposer that removes exactly this contribution', () => {
    const { service, unregister } = setUp();
    unregister();
    const successor = new FakeBackend();
    service.registerBackend(successor);
    unregister();
    expect(service.listBackends()).toEqual(['fake']);
  });
});

describe('listBackends', () => {
  it('lists registered types in registration order', () => {
    const { service } = setUp();
    service.registerBackend(new FakeBackend('b'));
    service.registerBackend(new FakeBackend('a'));
    expect(service.listBackends()).toEqual(['fake', 'b', 'a']);
  });

  it('gives fresh names that callers may change', () => {
    const { service } = setUp();
    service.listBackends().push('more');
    expect(service.listBackends()).toEqual(['fake']);
  });
});

describe('spawn', () => {
  it('returns published identity, metadata, status and MOTD', async () => {
    const { service, owner } = setUp();
    const result = await service.spawn(owner, { ...request, name: 'main' });
    expect(result).toEqual({
      sessionId: expect.stringMatching(/^session-[0-9a-f]{16}$/),
      name: 'main',
      type: 'fake',
      pid: 4242,
      status: { kind: 'running' },
      motd: 'welcome',
    });
  });

  it('gives the backend the id, the owner, the name, the cwd and what the resource needs', async () => {
    const { service, backend, owner } = setUp();
    const resource = { labels: { a: 'b' } };
    const { sessionId } = await service.spawn(owner, {
      ...request,
      name: 'n',
      cwd: '/x',
      resource,
    });
    expect(backend.specs[0]).toEqual({
      sessionId,
      owner,
      name: 'n',
      cwd: '/x',
      resource,
      signal: expect.anything(),
    });
  });

  it('takes the id from the host where that issues ids', async () => {
    const service = new TerminalSessionService({ issueId: (owner) => `of-${owner.agent}` });
    service.registerBackend(new FakeBackend());
    expect((await service.spawn(newAgent(), request)).sessionId).toBe('of-coder');
  });

  it('refuses an unknown type as NO_BACKEND', async () => {
    const { service, owner } = setUp();
    await expect(service.spawn(owner, { type: 'other' })).rejects.toEqual(failing('NO_BACKEND'));
  });

  it('publishes only after set-up has succeeded', async () => {
    const { service, backend, owner } = setUp();
    const { opened, open } = gate();
    backend.onSpawn = () => opened;
    const spawned = service.spawn(owner, request);
    expect(service.list(owner)).toEqual([]);
    open();
    const { sessionId } = await spawned;
    expect(service.list(owner).map((each) => each.sessionId)).toEqual([sessionId]);
  });

  it('leaves nothing behind when set-up fails', async () => {
    const { service, backend, owner } = setUp();
    backend.onSpawn = async () => {
      throw new Error('no such shell');
    };
    await expect(service.spawn(owner, { ...request, name: 'n' })).rejects.toThrow('no such shell');
    expect(service.list(owner)).toEqual([]);
    expect(service.hasOwnerActivity(owner)).toBe(false);
    backend.onSpawn = async () => {};
    await service.spawn(owner, { ...request, name: 'n' });
  });

  it('reserves the name while the spawn is pending', async () => {
    const { service, backend, owner } = setUp();
    const { opened, open } = gate();
    backend.onSpawn = () => opened;
    const first = service.spawn(owner, { ...request, name: 'n' });
    await expect(service.spawn(owner, { ...request, name: 'n' })).rejects.toEqual(
      failing('DUPLICATE_NAME'),
    );
    open();
    await first;
    await expect(service.spawn(owner, { ...request, name: 'n' })).rejects.toEqual(
      failing('DUPLICATE_NAME'),
    );
  });

  it('keeps names local to the owner', async () => {
    const { service, owner } = setUp();
    await service.spawn(owner, { ...request, name: 'n' });
    await service.spawn(newAgent(), { ...request, name: 'n' });
  });

  it('frees the name when the session is closed', async () => {
    const { service, owner } = setUp();
    const { sessionId } = await service.spawn(owner, { ...request, name: 'n' });
    await service.kill(owner, sessionId);
    await service.spawn(owner, { ...request, name: 'n' });
  });

  it('rejects with the reason of a signal that is aborted already, and starts nothing', async () => {
    const { service, backend, owner } = setUp();
    const reason = new Error('not any more');
    await expect(service.spawn(owner, request, AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(backend.specs).toEqual([]);
  });

  it('cancels unpublished set-up and rejects with the caller’s reason', async () => {
    const { service, backend, owner } = setUp();
    backend.onSpawn = ({ signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(new Error('aborted inside')));
      });
    const controller = new AbortController();
    const spawned = service.spawn(owner, request, controller.signal);
    const reason = new Error('the caller left');
    controller.abort(reason);
    await expect(spawned).rejects.toBe(reason);
    expect(service.hasOwnerActivity(owner)).toBe(false);
  });

  it('closes a session that its backend delivers in spite of the cancellation', async () => {
    const { service, backend, owner } = setUp();
    const { opened, open } = gate();
    backend.onSpawn = () => opened;
    const controller = new AbortController();
    const spawned = service.spawn(owner, request, controller.signal);
    const reason = new Error('the caller left');
    controller.abort(reason);
    open();
    await expect(spawned).rejects.toBe(reason);
    expect(backend.last.closes).toHaveLength(1);
    expect(service.list(owner)).toEqual([]);
  });

  it('does not let a clean-up failure replace the caller’s reason, and reports it at disposal', async () => {
    const { service, backend, owner } = setUp();
    const leftover = new TerminalBackendCleanupError('a child lives on');
    backend.onSpawn = ({ signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(leftover));
      });
    const controller = new AbortController();
    const spawned = service.spawn(owner, request, controller.signal);
    const reason = new Error('the caller left');
    controller.abort(reason);
    await expect(spawned).rejects.toBe(reason);
    await expect(service.dispose()).rejects.toMatchObject({ errors: [leftover] });
  });

  it('rejects with the clean-up failure where nobody cancelled', async () => {
    const { service, backend, owner } = setUp();
    const leftover = new TerminalBackendCleanupError('a child lives on');
    backend.onSpawn = async () => {
      throw leftover;
    };
    await expect(service.spawn(owner, request)).rejects.toBe(leftover);
  });

  it('refuses an owner that is being disposed as OWNER_NOT_LIVE', async () => {
    const { service, owner } = setUp();
    await owner.dispose();
    await expect(service.spawn(owner, request)).rejects.toEqual(failing('OWNER_NOT_LIVE'));
  });
});

describe('hasOwnerActivity', () => {
  it('is true across the entire spawn-to-close interval, with no publication gap', async () => {
    const { service, backend, owner } = setUp();
    expect(service.hasOwnerActivity(owner)).toBe(false);
    const setting = gate();
    backend.onSpawn = () => setting.opened;
    const spawned = service.spawn(owner, request);
    expect(service.hasOwnerActivity(owner)).toBe(true);
    // Looks at every turn of the microtask queue on which the session passes from pending to published.
    let published = false;
    let gaps = 0;
    void spawned.then(() => {
      published = true;
    });
    setting.open();
    while (!published) {
      if (!service.hasOwnerActivity(owner)) gaps += 1;
      await Promise.resolve();
    }
    expect(gaps).toBe(0);
    const { sessionId } = await spawned;
    const closing = gate();
    backend.last.onClose = () => closing.opened;
    const killed = service.kill(owner, sessionId);
    expect(service.hasOwnerActivity(owner)).toBe(true);
    closing.open();
    await killed;
    expect(service.hasOwnerActivity(owner)).toBe(false);
  });

  it('tells nothing of another owner with the same names', async () => {
    const { service, owner } = setUp();
    await service.spawn(owner, request);
    expect(service.hasOwnerActivity(newAgent())).toBe(false);
  });
});

describe('exact-owner authority', () => {
  const unknown = 'session-0000000000000000' as TerminalSessionId;

  it('compares the object, not its names: every operation of another one is FOREIGN_SESSION', async () => {
    const { service, owner } = setUp();
    const { sessionId } = await service.spawn(owner, request);
    const twin = newAgent();
    expect(() => service.startSend(twin, sessionId, text)).toThrow(failing('FOREIGN_SESSION'));
    expect(() => service.read(twin, sessionId)).toThrow(failing('FOREIGN_SESSION'));
    expect(() => service.signal(twin, sessionId, 'SIGINT')).toThrow(failing('FOREIGN_SESSION'));
    await expect(service.kill(twin, sessionId)).rejects.toEqual(failing('FOREIGN_SESSION'));
    expect(service.list(twin)).toEqual([]);
  });

  it('knows no session by a guessed id', async () => {
    const { service, owner } = setUp();
    expect(() => service.startSend(owner, unknown, text)).toThrow(failing('NO_SESSION'));
    expect(() => service.read(owner, unknown)).toThrow(failing('NO_SESSION'));
    await expect(service.kill(owner, unknown)).rejects.toEqual(failing('NO_SESSION'));
  });
});

describe('startSend', () => {
  it('takes one send at a time: another one is SEND_ACTIVE until the first has settled', async () => {
    const { service, backend, owner } = setUp();
    const { sessionId } = await service.spawn(owner, request);
    const operation = service.startSend(owner, sessionId, text);
    expect(() => service.startSend(owner, sessionId, text)).toThrow(failing('SEND_ACTIVE'));
    backend.last.settle();
    expect(await operation.done).toEqual(settledResult);
    service.startSend(owner, sessionId, text);
  });

  it('frees the session after a send that failed', async () => {
    const { service, backend, owner } = setUp();
    const { sessionId } = await service.spawn(owner, request);
    const operation = service.startSend(owner, sessionId, text);
    backend.last.fail(new Error('refused'));
    await expect(operation.done).rejects.toThrow('refused');
    service.startSend(owner, sessionId, text);
  });

  it('is refused while the session is being closed', async () => {
    const { service, backend, owner } = setUp();
    const { sessionId } = await service.spawn(owner, request);
    const closing = gate();
    backend.last.onClose = () => closing.opened;
    const killed = service.kill(owner, sessionId);
    expect(() => service.startSend(owner, sessionId, text)).toThrow(failing('NO_SESSION'));
    closing.open();
    await killed;
  });
});

describe('read and signal', () => {
  it('read asks for the newest page unless told otherwise', async () => {
    const { service, backend, owner } = setUp();
    const { sessionId } = await service.spawn(owner, request);
    expect(service.read(owner, sessionId).text).toBe('line\n');
    service.read(owner, sessionId, { offset: 3, count: 2 });
    expect(backend.last.reads).toEqual([{}, { offset: 3, count: 2 }]);
  });

  it('signal gives the delivered foreground process group', async () => {
    const { service, backend, owner } = setUp();
    const { sessionId } = await service.spawn(owner, request);
    const result = await service.signal(owner, sessionId, 'SIGTSTP');
    expect(result).toEqual({ delivered: true, targetPgid: 99 });
    expect(backend.last.signals).toEqual(['SIGTSTP']);
  });
});

describe('kill', () => {
  it('removes the session only after quiescent clean-up', async () => {
    const { service, backend, owner } = setUp();
    const { sessionId } = await service.spawn(owner, request);
    const closing = gate();
    backend.last.onClose = () => closing.opened;
    const killed = service.kill(owner, sessionId);
    expect(service.list(owner)).toHaveLength(1);
    closing.open();
    expect(await killed).toBe(true);
    expect(service.list(owner)).toEqual([]);
    expect(backend.last.closes).toEqual(['model request']);
  });

  it('is false when the same close is already in flight, and waits for it', async () => {
    const { service, backend, owner } = setUp();
    const { sessionId } = await service.spawn(owner, request);
    const closing = gate();
    backend.last.onClose = () => closing.opened;
    const first = service.kill(owner, sessionId, 'first');
    const second = service.kill(owner, sessionId, 'second');
    closing.open();
    expect(await Promise.all([first, second])).toEqual([true, false]);
    expect(backend.last.closes).toEqual(['first']);
  });

  it('keeps a session that could not be closed, so that closing can be tried again', async () => {
    const { service, backend, owner } = setUp();
    const { sessionId } = await service.spawn(owner, request);
    backend.last.onClose = async () => {
      throw new TerminalBackendCleanupError('pid 7 lives');
    };
    await expect(service.kill(owner, sessionId)).rejects.toThrow('pid 7 lives');
    expect(service.list(owner)).toHaveLength(1);
    backend.last.onClose = async () => {};
    expect(await service.kill(owner, sessionId)).toBe(true);
  });
});

describe('list', () => {
  it('shows exactly one owner’s sessions in publication order, as fresh snapshots', async () => {
    const { service, backend, owner } = setUp();
    const slow = gate();
    backend.onSpawn = ({ name }) => (name === 'slow' ? slow.opened : Promise.resolve());
    const first = service.spawn(owner, { ...request, name: 'slow' });
    await service.spawn(owner, { ...request, name: 'quick' });
    await service.spawn(newAgent('other'), { ...request, name: 'foreign' });
    slow.open();
    await first;
    expect(service.list(owner).map(({ name }) => name)).toEqual(['quick', 'slow']);
    const [snapshot] = service.list(owner);
    if (snapshot) snapshot.name = 'changed';
    expect(service.list(owner)[0]?.name).toBe('quick');
  });

  it('shows the status at that moment', async () => {
    const { service, backend, owner } = setUp();
    await service.spawn(owner, request);
    backend.last.state = { kind: 'exited', exitCode: null, signal: 'SIGKILL' };
    expect(service.list(owner)[0]?.status).toEqual(backend.last.state);
  });
});

describe('what outlives what', () => {
  it('sessions survive their backend’s unregistration', async () => {
    const { service, backend, owner, unregister } = setUp();
    const { sessionId } = await service.spawn(owner, request);
    unregister();
    expect(service.listBackends()).toEqual([]);
    const { done } = service.startSend(owner, sessionId, text);
    backend.last.settle();
    expect(await done).toEqual(settledResult);
    expect(await service.kill(owner, sessionId)).toBe(true);
  });

  it('a spawn under way survives it too', async () => {
    const { service, backend, owner, unregister } = setUp();
    const { opened, open } = gate();
    backend.onSpawn = () => opened;
    const spawned = service.spawn(owner, request);
    unregister();
    open();
    expect((await spawned).type).toBe('fake');
  });
});

describe('an owner’s disposal', () => {
  it('closes its sessions and aborts its set-ups, and touches no other owner’s', async () => {
    const { service, backend, owner } = setUp();
    const other = newAgent();
    await service.spawn(owner, request);
    const own = backend.last;
    await service.spawn(other, request);
    const foreign = backend.last;
    backend.onSpawn = ({ signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    const pending = service.spawn(owner, request);
    const refused = expect(pending).rejects.toEqual(failing('OWNER_NOT_LIVE'));
    await owner.dispose();
    await refused;
    expect(own.closes).toEqual(['owner disposal']);
    expect(foreign.closes).toEqual([]);
    expect(service.hasOwnerActivity(owner)).toBe(false);
    expect(service.list(other)).toHaveLength(1);
  });

  it('is awaited by one clean-up however many sessions there are', async () => {
    const { service, owner } = setUp();
    let attached = 0;
    const counted = Object.create(owner, {
      onDispose: {
        value: (cleanup: () => Promise<void>) => {
          attached += 1;
          return owner.onDispose(cleanup);
        },
      },
      live: { get: () => owner.live },
    });
    await service.spawn(counted, request);
    await service.spawn(counted, request);
    expect(attached).toBe(1);
  });

  it('attempts every close and reports each failure', async () => {
    const { service, backend, owner } = setUp();
    await service.spawn(owner, request);
    await service.spawn(owner, request);
    await service.spawn(owner, request);
    const failures = [new Error('one'), new Error('two')];
    backend.sessions.slice(0, 2).forEach((session, index) => {
      session.onClose = () => Promise.reject(failures[index]);
    });
    await expect(owner.dispose()).rejects.toMatchObject({ errors: [{ errors: failures }] });
    expect(backend.sessions.map(({ closes }) => closes.length)).toEqual([1, 1, 1]);
  });
});

describe('disposal of the service', () => {
  it('aborts unpublished set-ups, whose callers get SERVICE_DISPOSING', async () => {
    const { service, backend, owner } = setUp();
    backend.onSpawn = ({ signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(new Error('inside')));
      });
    const refused = expect(service.spawn(owner, request)).rejects.toEqual(
      failing('SERVICE_DISPOSING'),
    );
    await service.dispose();
    await refused;
  });

  it('attempts every close of every owner and aggregates the failures', async () => {
    const { service, backend, owner } = setUp();
    await service.spawn(owner, request);
    await service.spawn(newAgent('b'), request);
    await service.spawn(newAgent('c'), request);
    const failures = [new Error('one'), new Error('two')];
    backend.sessions.slice(0, 2).forEach((session, index) => {
      session.onClose = () => Promise.reject(failures[index]);
    });
    await expect(service.dispose()).rejects.toMatchObject({ errors: failures });
    expect(backend.sessions.map(({ closes }) => closes)).toEqual([
      ['service disposal'],
      ['service disposal'],
      ['service disposal'],
    ]);
  });

  it('waits for a close in flight instead of closing twice', async () => {
    const { service, backend, owner } = setUp();
    const { sessionId } = await service.spawn(owner, request);
    const closing = gate();
    backend.last.onClose = () => closing.opened;
    const killed = service.kill(owner, sessionId);
    const disposed = service.dispose();
    closing.open();
    await Promise.all([killed, disposed]);
    expect(backend.last.closes).toEqual(['model request']);
  });

  it('refuses what is new as SERVICE_DISPOSING', async () => {
    const { service, owner } = setUp();
    const { sessionId } = await service.spawn(owner, request);
    const disposed = service.dispose();
    await expect(service.spawn(owner, request)).rejects.toEqual(failing('SERVICE_DISPOSING'));
    expect(() => service.registerBackend(new FakeBackend('new'))).toThrow(
      failing('SERVICE_DISPOSING'),
    );
    expect(() => service.startSend(owner, sessionId, text)).toThrow(failing('SERVICE_DISPOSING'));
    await disposed;
  });

  it('happens once however often it is asked for', async () => {
    const { service, backend, owner } = setUp();
    await service.spawn(owner, request);
    await Promise.all([service.dispose(), service.dispose(), service[Symbol.asyncDispose]()]);
    expect(backend.last.closes).toHaveLength(1);
  });
});
