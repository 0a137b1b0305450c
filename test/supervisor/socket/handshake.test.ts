import { chmod, mkdir, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { sizeDelimitedEncode } from '@bufbuild/protobuf/wire';
import fc from 'fast-check';
import { AsyncQueue } from '../../../src/core/asyncQueue.js';
import { WelcomeSchema } from '../../../src/gen/internal/grantty/internal/v1/connection_pb.js';
import type { LiveItem } from '../../../src/supervisor/api.js';
import { connectSupervisor } from '../../../src/supervisor/socket/socketClient.js';
import { serveSupervisor } from '../../../src/supervisor/socket/socketServer.js';
import { silentLog as log, name, owner } from '../../support/registry.js';
import { served, socketDir, stateDirId } from '../../support/socketRegistry.js';
import { FakeChannel, fakeSupervisor } from './fakeSupervisor.js';
import { greet, hello, rawPeer } from './rawPeer.js';

const nobody = fakeSupervisor({
  openOutput: () => Promise.reject(new Error('never called')),
});

describe('the greeting on the supervisor’s socket', () => {
  it('refuses another version, and says which both are', async () => {
    await using over = await served(nobody);
    const peer = await rawPeer(over.path);
    expect(await greet(peer, { protocol: 999 })).toMatchObject({
      case: 'refused',
      value: {
        reason: 'SUPERVISOR_UNAVAILABLE',
        message: expect.stringMatching(/version 999 .* version 3: run both from one release/),
      },
    });
    await peer.closed;
  });

  it('refuses a server of another state directory, and names both', async () => {
    await using over = await served(nobody);
    const { path } = over;
    await expect(connectSupervisor({ path, stateDirId: 'other', log })).rejects.toMatchObject({
      reason: 'SUPERVISOR_UNAVAILABLE',
      message: expect.stringMatching(/"other".*"test".*--state-dir/),
    });
  });

  it('refuses a connection without a purpose, and one of an unknown terminal', async () => {
    await using over = await served(nobody);
    const peer = await rawPeer(over.path);
    expect(await greet(peer, { purpose: { case: undefined } })).toMatchObject({ case: 'refused' });
    await peer.closed;
    const other = await rawPeer(over.path);
    const purpose = { case: 'output', value: { key: { owner: '../x', id: 'a' } } } as const;
    expect(await greet(other, { purpose })).toMatchObject({
      case: 'refused',
      value: { message: expect.stringContaining('no name') },
    });
    await other.closed;
  });

  it('closes a connection that says nothing, or only half a greeting, in time', async () => {
    await using directory = await socketDir();
    const { path } = directory;
    await using _server = await serveSupervisor(nobody, { path, stateDirId, log, handshakeMs: 50 });
    const silent = await rawPeer(path);
    const half = await rawPeer(path);
    half.socket.write(hello({}).subarray(0, 5));
    await Promise.all([silent.closed, half.closed]);
  });

  it('warns of a connection that breaks it off, not of one that only looks whether anybody listens', async () => {
    await using directory = await socketDir();
    const { path } = directory;
    const warned: unknown[] = [];
    const warning = { ...log, warn: (fields: object) => void warned.push(fields) };
    const server = await serveSupervisor(nobody, { path, stateDirId, log: warning });
    const look = await rawPeer(path);
    look.socket.end();
    await look.closed;
    const half = await rawPeer(path);
    half.socket.end(hello({}).subarray(0, 5));
    await half.closed;
    await server[Symbol.asyncDispose]();
    expect(warned).toEqual([
      { err: expect.objectContaining({ message: expect.stringContaining('half a message') }) },
    ]);
  });

  it('does not take another program for the supervisor', async () => {
    await using directory = await socketDir();
    const { path } = directory;
    const answers = [
      Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'),
      sizeDelimitedEncode(WelcomeSchema, create(WelcomeSchema, {})),
      Buffer.alloc(0),
    ];
    const server = createServer((socket) => {
      socket.on('error', () => {}).resume();
      socket.end(answers.shift() ?? '');
    });
    await new Promise<void>((resolve) => server.listen(path, resolve));
    for (let left = answers.length; left > 0; left -= 1) {
      await expect(connectSupervisor({ path, stateDirId, log })).rejects.toMatchObject({
        reason: 'SUPERVISOR_UNAVAILABLE',
      });
    }
    await new Promise((resolve) => server.close(resolve));
  });
});

describe('any bytes at all on the supervisor’s socket', () => {
  const input = { key: { owner: 'o', id: 'i' }, kind: 'agent' };
  it.each([
    ['in place of a greeting', undefined],
    ['on a control connection', { case: 'control', value: {} } as const],
    ['on an input connection', { case: 'input', value: input } as const],
    ['on an output connection', { case: 'output', value: { key: input.key } } as const],
  ])('harm nobody else %s', async (_, purpose) => {
    await using over = await served(
      fakeSupervisor({
        get: async () => undefined,
        attach: async () => new FakeChannel(),
        openOutput: async (_key, signal) => {
          const items = new AsyncQueue<LiveItem>(1);
          signal.addEventListener('abort', () => items.end());
          return { nextSeq: 1, items };
        },
      }),
    );
    const bytes = fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }), { maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(bytes, async (chunks) => {
        const peer = await rawPeer(over.path);
        if (purpose) await greet(peer, { purpose });
        for (const chunk of chunks) peer.socket.write(chunk);
        peer.socket.end();
        await peer.closed;
      }),
      { numRuns: 40 },
    );
    expect(await over.supervisor.get({ owner, id: name('i') })).toBeUndefined();
  });
});

describe('the place of the supervisor’s socket', () => {
  it('is open to its owner alone', async () => {
    await using over = await served(nobody);
    expect((await stat(over.path)).mode & 0o777).toBe(0o600);
  });

  it('refuses a path that the kernel would cut, on both ends, and takes the longest one', async () => {
    await using directory = await socketDir();
    const longest = directory.path.padEnd(107, 'x');
    for (const path of [`${longest}x`, `${longest.slice(0, 106)}é`]) {
      const refusal = { reason: 'FIELD_INVALID', message: expect.stringContaining('107') };
      await expect(serveSupervisor(nobody, { path, stateDirId, log })).rejects.toMatchObject(
        refusal,
      );
      await expect(connectSupervisor({ path, stateDirId, log })).rejects.toMatchObject(refusal);
    }
    await using _server = await serveSupervisor(nobody, { path: longest, stateDirId, log });
    await using _client = await connectSupervisor({ path: longest, stateDirId, log });
  });

  it('refuses a directory that others may enter, one that is missing, and a relative path', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'grantty-socket-'));
    const path = join(directory, 'socket');
    try {
      for (const mode of [0o710, 0o701, 0o777]) {
        await chmod(directory, mode);
        const refusal = { reason: 'FIELD_INVALID', message: expect.stringContaining('chmod 700') };
        await expect(serveSupervisor(nobody, { path, stateDirId, log })).rejects.toMatchObject(
          refusal,
        );
        await expect(connectSupervisor({ path, stateDirId, log })).rejects.toMatchObject(refusal);
      }
      for (const wrong of [join(directory, 'none', 'socket'), 'socket']) {
        await expect(
          serveSupervisor(nobody, { path: wrong, stateDirId, log }),
        ).rejects.toMatchObject({ reason: 'FIELD_INVALID' });
      }
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  it('replaces what a lost supervisor left, and nothing else', async () => {
    await using directory = await socketDir();
    const { path } = directory;
    const options = { path, stateDirId, log };
    {
      await using _first = await serveSupervisor(nobody, options);
      await expect(serveSupervisor(nobody, options)).rejects.toMatchObject({
        message: expect.stringContaining('another supervisor listens'),
      });
    }
    await expect(stat(path)).rejects.toMatchObject({ code: 'ENOENT' });
    await leaveSocket(path);
    {
      await using _second = await serveSupervisor(nobody, options);
    }
    await writeFile(path, '');
    await expect(serveSupervisor(nobody, options)).rejects.toMatchObject({
      message: expect.stringContaining('not a socket'),
    });
    await rm(path);
    await mkdir(path);
    await expect(serveSupervisor(nobody, options)).rejects.toMatchObject({
      message: expect.stringContaining('not a socket'),
    });
  });

  it('says so when nobody listens', async () => {
    await using directory = await socketDir();
    const { path } = directory;
    await expect(connectSupervisor({ path, stateDirId, log })).rejects.toMatchObject({
      reason: 'SUPERVISOR_UNAVAILABLE',
      message: expect.stringContaining('no supervisor listens'),
    });
  });
});

/** A socket that nobody listens on, as kill -9 leaves it. */
async function leaveSocket(path: string): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(`${path}.old`, resolve));
  await rename(`${path}.old`, path);
  await new Promise((resolve) => server.close(resolve));
  await new Promise<void>((resolve, reject) => {
    connect(path, () => reject(new Error('somebody listens'))).on('error', () => resolve());
  });
}
