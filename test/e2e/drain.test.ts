/** SIGTERM to a server with open streams, and a second one. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client } from '../../src/client/connect.js';
import { ClosingReason } from '../../src/gen/public/grantty/v1/stream_pb.js';
import { AttachmentKind } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { type DevServer, startDevServer } from '../support/devServer.js';

/** Resolves when the server accepts no connection any more, which is how a drain begins. */
async function refuses({ settings }: DevServer): Promise<void> {
  const [host, port] = (settings.GRANTTY_ADDRESS ?? '').split(':');
  for (;;) {
    const socket = connect({ host, port: Number(port) });
    try {
      await once(socket, 'connect');
    } catch {
      return;
    } finally {
      socket.destroy();
    }
  }
}

/** Milliseconds: the grace of open streams is a quarter of it. */
const BOUND_MS = 20_000;

describe('a server that is told to end', () => {
  let stateDir: string;
  let server: DevServer;
  let client: Client;

  beforeEach(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'grantty-drain-'));
    server = await startDevServer(stateDir);
    client = await server.client();
    await client.terminals.createTerminal({ agent: 'a', id: 'kept', command: ['cat'] });
  }, 150_000);

  afterEach(async () => {
    await server[Symbol.asyncDispose]();
    await rm(stateDir, { recursive: true, force: true });
  });

  const terminal = { id: 'kept' };

  /** What a single call of a stream was told last, and how it ended; `begun` after its first event. */
  function follow(stream: AsyncIterable<{ event: { case: string | undefined; value?: unknown } }>) {
    let began = () => {};
    const begun = new Promise<void>((resolve) => {
      began = resolve;
    });
    const ended = (async () => {
      let last: unknown;
      try {
        for await (const { event } of stream) {
          last = event;
          began();
        }
        return { last };
      } catch (error) {
        return { last, error };
      }
    })();
    return { begun, ended };
  }

  it('sends every stream away with a reason, and ends with 0', async () => {
    const open = { case: 'open', value: { terminal, kind: AttachmentKind.AGENT } } as const;
    const attached = await client.terminals.attach();
    await attached.send({ frame: open });
    const streams = [
      follow(client.terminals.watch({ terminal })),
      follow(attached.responses),
      follow(client.terminals.watchTerminals({})),
    ];
    const waiting = client.terminals
      .wait({ terminal, condition: { case: 'exit', value: true } })
      .catch((error: unknown) => error);
    await Promise.all(streams.map(({ begun }) => begun));
    const began = performance.now();
    expect(await server.end('SIGTERM')).toBe(0);
    expect(performance.now() - began).toBeLessThan(BOUND_MS);
    const gone = { code: 'UNAVAILABLE', reason: 'SERVER_DRAINING' };
    for (const { ended } of streams) {
      expect(await ended).toMatchObject({
        last: { case: 'closing', value: { reason: ClosingReason.SERVER_DRAINING } },
        error: { ...gone, retryAfterMs: expect.any(Number) },
      });
    }
    // It may have been on its way still.
    expect(await waiting).toMatchObject({ code: 'UNAVAILABLE' });
  }, 150_000);

  it('ends at once when told a second time', async () => {
    // A connection that never goes by itself: it says nothing and takes nothing.
    const where = server.settings.GRANTTY_ADDRESS?.replace(':', '/');
    const idle = spawn('bash', ['-c', `exec 3<>/dev/tcp/${where}; echo open; exec sleep 1000`], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    try {
      await once(idle.stdout, 'data');
      process.kill(server.pid, 'SIGTERM');
      await refuses(server);
      expect(await server.end('SIGTERM')).toBe('SIGTERM');
      // Nothing that was there depends on an end in order.
      await using again = await startDevServer(stateDir);
      const { terminal: found } = await (await again.client()).terminals.getTerminal({ terminal });
      expect(found?.instance).toBe(1);
      expect(await readFile(join(stateDir, 'supervisor.pid'), 'utf8')).toMatch(/^\d+\n$/);
    } finally {
      idle.kill('SIGKILL');
      await once(idle, 'exit');
    }
  }, 150_000);
});
