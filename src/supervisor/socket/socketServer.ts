/** Serves a supervisor on a Unix socket. */
import { chmod, chown, lstat, stat, unlink } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { dirname } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { errorCode } from '../../core/errors.js';
import {
  type Hello,
  HelloSchema,
  WelcomeSchema,
} from '../../gen/internal/grantty/internal/v1/connection_pb.js';
import type { Supervisor } from '../api.js';
import { serveControl } from './controlServer.js';
import { encodeFailure } from './failureCodec.js';
import { FrameSocket } from './frameSocket.js';
import { firstMessage } from './handshake.js';
import { serveInput } from './inputServer.js';
import { serveOutput } from './outputServer.js';
import {
  HANDSHAKE_MS,
  PROTOCOL_VERSION,
  type SocketLog,
  unavailable,
  unsound,
} from './protocol.js';
import { checkSocketPath } from './socketPath.js';

export interface ServeOptions {
  /** Absolute, at most 107 bytes, in a directory of mode 0700. */
  readonly path: string;
  /** A client of another state directory is refused. */
  readonly stateDirId: string;
  readonly log: SocketLog;
  /** Milliseconds for a connection's first message. */
  readonly handshakeMs?: number;
}

/** Connections at once: one for each attachment and watched terminal of a busy host. */
const MAX_CONNECTIONS = 16_384;

/**
 * Listens until disposed. A socket that a lost supervisor left is replaced, one that answers is not.
 * Disposing ends all connections, not the supervisor.
 * @throws FIELD_INVALID for an unsafe path, SUPERVISOR_UNAVAILABLE when another one listens there
 */
export async function serveSupervisor(
  supervisor: Supervisor,
  options: ServeOptions,
): Promise<AsyncDisposable> {
  const { path, log } = options;
  await checkSocketPath(path);
  await removeStale(path);
  const open = new Map<FrameSocket, Promise<void>>();
  const server = createServer((socket) => {
    const frames = new FrameSocket(socket);
    const served = serveConnection(frames, supervisor, options)
      .catch((error: unknown) => log.warn({ err: error }, 'connection ended'))
      .finally(() => open.delete(frames));
    open.set(frames, served);
  });
  server.maxConnections = MAX_CONNECTIONS;
  await listen(server, path);
  // Of one connection that could not be taken, for want of descriptors.
  server.on('error', (error) => log.error({ err: error }, 'a connection was not accepted'));
  await handOver(path);
  return {
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const frames of open.keys()) frames.destroy();
      await Promise.all(open.values());
      await closed;
    },
  };
}

/** Resolves when the connection is closed and nothing of it is left. */
async function serveConnection(
  frames: FrameSocket,
  supervisor: Supervisor,
  options: ServeOptions,
): Promise<void> {
  const { log, handshakeMs = HANDSHAKE_MS } = options;
  const hello = await greeting(frames, handshakeMs);
  if (hello === undefined) return;
  try {
    checkHello(hello, options);
    const { purpose } = hello;
    switch (purpose.case) {
      case 'control':
        return await serveControl(frames, supervisor, log);
      case 'input':
        return await serveInput(frames, supervisor, purpose.value, log);
      case 'output':
        return await serveOutput(frames, supervisor, purpose.value, log);
      case undefined:
        throw unsound('a connection without a purpose');
    }
  } catch (error) {
    const refused = encodeFailure(error, log);
    frames.send(
      WelcomeSchema,
      create(WelcomeSchema, { outcome: { case: 'refused', value: refused } }),
    );
    frames.close();
    await frames.closed;
  }
}

/** Undefined of who connects and leaves again: to see whether anybody listens is no fault. */
async function greeting(frames: FrameSocket, timeoutMs: number): Promise<Hello | undefined> {
  try {
    return await firstMessage(frames, HelloSchema, timeoutMs, (message) => message);
  } catch (error) {
    if ((await frames.closed) === undefined) return undefined;
    throw error;
  }
}

/** @throws SUPERVISOR_UNAVAILABLE that says what does not fit */
function checkHello({ protocol, stateDirId }: Hello, options: ServeOptions): void {
  if (protocol !== PROTOCOL_VERSION) {
    throw unavailable(
      `the server speaks version ${protocol} of the supervisor's protocol, the supervisor version ${PROTOCOL_VERSION}: run both from one release`,
    );
  }
  if (stateDirId !== options.stateDirId) {
    throw unavailable(
      `the server uses state directory ${JSON.stringify(stateDirId)}, the supervisor at ${options.path} has ${JSON.stringify(options.stateDirId)}: give both the same --state-dir`,
    );
  }
}

async function removeStale(path: string): Promise<void> {
  try {
    if (!(await lstat(path)).isSocket()) {
      throw unavailable(`${path} is not a socket; take it out of the way`);
    }
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return;
    throw error;
  }
  if (await answers(path)) throw unavailable(`another supervisor listens at ${path}`);
  await unlink(path);
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path);
    probe.on('connect', () => {
      probe.destroy();
      resolve(true);
    });
    probe.on('error', () => resolve(false));
  });
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** The socket is its directory owner's alone: the service user that the server runs as. */
async function handOver(path: string): Promise<void> {
  const { uid, gid } = await stat(dirname(path));
  await chmod(path, 0o600);
  if (process.geteuid?.() === 0) await chown(path, uid, gid);
}
