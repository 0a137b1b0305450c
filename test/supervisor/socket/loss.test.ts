import { createServer } from 'node:net';
import { create } from '@bufbuild/protobuf';
import { sizeDelimitedEncode } from '@bufbuild/protobuf/wire';
import { AsyncQueue } from '../../../src/core/asyncQueue.js';
import { WelcomeSchema } from '../../../src/gen/internal/grantty/internal/v1/connection_pb.js';
import type { LiveItem, Supervisor, TerminalChange } from '../../../src/supervisor/api.js';
import { connectSupervisor } from '../../../src/supervisor/socket/socketClient.js';
import { serveSupervisor } from '../../../src/supervisor/socket/socketServer.js';
import { lease, silentLog as log, name, owner } from '../../support/registry.js';
import { socketDir, stateDirId } from '../../support/socketRegistry.js';
import { FakeChannel, fakeSnapshot, fakeSupervisor } from './fakeSupervisor.js';

const key = { owner, id: name('a') };
const agent = { kind: 'agent', subject: 's', principal: 'p' } as const;
const never = new AbortController().signal;
const info = {
  isolation: 'shared-uid',
  stateDirId,
  version: 'test',
  maxLiveTerminals: 1,
  maxLiveTerminalsPerOwner: 1,
  life: {},
} as const;
const unavailable = { reason: 'SUPERVISOR_UNAVAILABLE' };

/** Everything waits, until the connection ends it. */
function waiting(fenced: string[] = []): Supervisor {
  return fakeSupervisor({
    get: async ({ id }) => fakeSnapshot(id),
    exited: (_, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      }),
    write: () => new Promise(() => {}),
    changes: (_, signal) => {
      const queue = new AsyncQueue<TerminalChange>(1);
      signal.addEventListener('abort', () => queue.end());
      return queue;
    },
    attach: async () => new FakeChannel(),
    openOutput: async (_, signal) => {
      const queue = new AsyncQueue<LiveItem>(1);
      signal.addEventListener('abort', () => queue.end());
      return { nextSeq: 1, items: queue };
    },
    fence: async (ids) => {
      fenced.push(...ids);
    },
  });
}

/** Resolves when `onChange` has been told `wanted`. */
function linkStates() {
  const seen: boolean[] = [];
  let wake = () => {};
  return {
    seen: seen as readonly boolean[],
    onChange: (connected: boolean) => {
      seen.push(connected);
      wake();
    },
    async until(wanted: boolean): Promise<void> {
      while (seen.at(-1) !== wanted) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}

describe('a supervisor that is lost', () => {
  it('fails all that is under way, then every call, until it is there again', async () => {
    await using directory = await socketDir();
    const { path } = directory;
    const options = { path, stateDirId, log };
    const fenced: string[] = [];
    const leases: (string | undefined)[] = [];
    const first = await serveSupervisor(
      fakeSupervisor({
        ...waiting(fenced),
        write: (_, { lease: under }) => {
          leases.push(under.scope);
          return new Promise(() => {});
        },
      }),
      options,
    );
    const states = linkStates();
    await using supervisor = await connectSupervisor({ ...options, onChange: states.onChange });
    const input = await supervisor.attach(key, agent);
    const live = await supervisor.openOutput(key, never);
    const changes = supervisor.changes(undefined, never)[Symbol.asyncIterator]();
    const pending = [
      supervisor.exited(key, never),
      supervisor.write(key, { data: Buffer.from('x'), lease }),
      input.send(Buffer.from('x'), lease),
      live.items[Symbol.asyncIterator]().next(),
      changes.next(),
    ];
    const results = Promise.allSettled(pending);
    // Answered behind the others, so they have arrived.
    await supervisor.get(key);
    await first[Symbol.asyncDispose]();
    for (const result of await results) expect(result).toMatchObject({ reason: unavailable });
    expect(leases).toHaveLength(1);
    expect(fenced).toEqual(leases);

    await states.until(false);
    await expect(supervisor.get(key)).rejects.toMatchObject(unavailable);
    await expect(supervisor.attach(key, agent)).rejects.toMatchObject(unavailable);
    await expect(supervisor.openOutput(key, never)).rejects.toMatchObject(unavailable);
    await expect(
      supervisor.changes(undefined, never)[Symbol.asyncIterator]().next(),
    ).rejects.toMatchObject(unavailable);
    await expect(input.send(Buffer.from('y'), lease)).rejects.toMatchObject(unavailable);
    await input[Symbol.asyncDispose]();

    const second = await serveSupervisor(waiting(), options);
    await states.until(true);
    expect((await supervisor.get(key))?.record.id).toBe('a');
    await using _again = await supervisor.attach(key, agent);
    await second[Symbol.asyncDispose]();
  });

  it('counts as lost when it holds the connection and says nothing', async () => {
    await using directory = await socketDir();
    const options = { path: directory.path, stateDirId, log };
    const frozen = { ...waiting(), info: () => new Promise<never>(() => {}) };
    await using _server = await serveSupervisor(fakeSupervisor(frozen), options);
    const states = linkStates();
    const patience = { silenceMs: 200, onChange: states.onChange };
    await using supervisor = await connectSupervisor({ ...options, ...patience });
    const input = await supervisor.attach(key, agent);
    await expect(supervisor.exited(key, never)).rejects.toMatchObject(unavailable);
    await expect(input.send(Buffer.from('x'), lease)).rejects.toMatchObject(unavailable);
    await states.until(true);
    expect(states.seen.slice(0, 2)).toEqual([false, true]);
  });

  it('is kept as long as it says anything, however long a call takes', async () => {
    await using directory = await socketDir();
    const options = { path: directory.path, stateDirId, log };
    let asked = 0;
    let end = () => {};
    const enough = new Promise<void>((resolve) => {
      end = resolve;
    });
    const busy: Supervisor = {
      ...waiting(),
      info: async () => {
        asked += 1;
        if (asked === 12) end();
        return { ...info, pid: asked };
      },
      exited: async (_, signal) => {
        await enough;
        signal.throwIfAborted();
        return fakeSnapshot('a');
      },
    };
    await using _server = await serveSupervisor(fakeSupervisor(busy), options);
    const states = linkStates();
    // Three times as long as silence would be borne.
    const patience = { silenceMs: 400, onChange: states.onChange };
    await using supervisor = await connectSupervisor({ ...options, ...patience });
    expect((await supervisor.exited(key, never)).record.id).toBe('a');
    expect(states.seen).toEqual([]);
  });

  it('refuses more when it does not read what it is asked', async () => {
    await using directory = await socketDir();
    const deaf = createServer((socket) => {
      socket.once('data', () => {
        socket.write(
          sizeDelimitedEncode(
            WelcomeSchema,
            create(WelcomeSchema, { outcome: { case: 'control', value: {} } }),
          ),
        );
        socket.pause();
      });
      ended = () => socket.destroy();
    });
    let ended = () => {};
    await new Promise<void>((resolve) => deaf.listen(directory.path, resolve));
    const supervisor = await connectSupervisor({ path: directory.path, stateDirId, log });
    const data = Buffer.alloc(64 * 1024);
    // What does not fit the kernel's buffer waits; 16 MiB of it, and not more.
    const writes = Array.from({ length: 300 }, () => supervisor.write(key, { data, lease }));
    const results = Promise.allSettled(writes);
    const refused = await Promise.race(writes.map((each) => each.catch((error: Error) => error)));
    expect(refused).toMatchObject({ ...unavailable, message: expect.stringContaining('read') });
    await supervisor[Symbol.asyncDispose]();
    const lost = (await results).filter(
      (each) => each.status === 'rejected' && !String(each.reason).includes('read'),
    );
    expect(lost.length).toBeGreaterThan(16 * 15);
    const closed = new Promise((resolve) => deaf.close(resolve));
    ended();
    await closed;
  });

  it('ends input and output of a connection of their own that is lost', async () => {
    await using directory = await socketDir();
    const options = { path: directory.path, stateDirId, log };
    await using _server = await serveSupervisor(
      fakeSupervisor({
        ...waiting(),
        attach: async () => {
          const channel = new FakeChannel();
          channel.send = () => {
            throw new TypeError('a defect that ends the connection');
          };
          return channel;
        },
      }),
      options,
    );
    await using supervisor = await connectSupervisor(options);
    const input = await supervisor.attach(key, agent);
    await expect(input.send(Buffer.from('x'), lease)).rejects.toMatchObject(unavailable);
    expect((await supervisor.get(key))?.record.id).toBe('a');
  });
});

describe('connecting to a supervisor', () => {
  it('waits as long as it is told for one that is about to listen', async () => {
    await using directory = await socketDir();
    const options = { path: directory.path, stateDirId, log };
    const connecting = connectSupervisor({ ...options, patienceMs: 20_000 });
    await expect(connectSupervisor(options)).rejects.toMatchObject(unavailable);
    await using _server = await serveSupervisor(waiting(), options);
    await using supervisor = await connecting;
    expect(await supervisor.get(key)).toBeDefined();
  });

  it('frees everything when it is disposed, waits and streams included', async () => {
    await using directory = await socketDir();
    const options = { path: directory.path, stateDirId, log };
    await using _server = await serveSupervisor(waiting(), options);
    const supervisor = await connectSupervisor(options);
    const input = await supervisor.attach(key, agent);
    const pending = [supervisor.exited(key, never), input.send(Buffer.from('x'), lease)];
    const results = Promise.allSettled(pending);
    await supervisor[Symbol.asyncDispose]();
    for (const result of await results) expect(result).toMatchObject({ reason: unavailable });
    await expect(supervisor.get(key)).rejects.toMatchObject(unavailable);
    await expect(supervisor.attach(key, agent)).rejects.toMatchObject(unavailable);
    await supervisor[Symbol.asyncDispose]();
  });

  it('gives up its attempts when it is disposed in the middle of them', async () => {
    await using directory = await socketDir();
    const options = { path: directory.path, stateDirId, log };
    const states = linkStates();
    const server = await serveSupervisor(waiting(), options);
    const supervisor = await connectSupervisor({ ...options, onChange: states.onChange });
    await server[Symbol.asyncDispose]();
    await states.until(false);
    await supervisor[Symbol.asyncDispose]();
  });
});
