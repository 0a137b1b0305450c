/**
 * The operator's way in to a running server: a Unix socket that only its user and root can reach. One
 * connection is one question and one answer, each a line of JSON.
 */
import { chmod, lstat, unlink } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import type { Logger } from 'pino';
import { parseRevoked, writeRevoked } from '../auth/revocationList.js';
import { errorCode, GranttyError } from '../core/errors.js';
import { asObject } from '../core/jsonShape.js';
import type { Revoked } from '../core/revoked.js';
import type { RevocationResult } from '../server/revoker.js';
import { checkSocketPath } from '../supervisor/socket/socketPath.js';

/** Bytes of a question and of an answer. */
export const MAX_ADMIN_BYTES = 16 * 1024;

/** Milliseconds for a question to arrive. */
const QUESTION_TIMEOUT_MS = 5_000;

/** Connections at one time; what comes above is closed at once. */
const MAX_CONNECTIONS = 16;

export type AdminAnswer =
  | { readonly ok: true; readonly at_ms: number; readonly closed_streams: number }
  | { readonly ok: false; readonly reason: string; readonly message: string };

export interface AdminSocketOptions {
  /** In a directory of mode 0700. Whoever holds the lock of the state directory owns the path. */
  readonly path: string;
  readonly revoke: (what: Revoked) => Promise<RevocationResult>;
  readonly logger: Logger;
}

/** Resolves when questions are answered. @throws FIELD_INVALID for a path that would not be safe */
export async function openAdminSocket(options: AdminSocketOptions): Promise<AsyncDisposable> {
  const { path } = options;
  await checkSocketPath(path);
  await removeStale(path);
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    // Who asked has gone; the answer has nobody to go to.
    socket.on('error', () => socket.destroy());
    answer(socket, options).catch((error: unknown) => {
      options.logger.error({ err: error }, 'admin socket');
      socket.destroy();
    });
  });
  server.maxConnections = MAX_CONNECTIONS;
  await listen(server, path);
  await chmod(path, 0o600);
  return {
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

export function adminQuestion(what: Revoked): string {
  return `${JSON.stringify({ revoke: writeRevoked(what) })}\n`;
}

async function answer(socket: Socket, { revoke, logger }: AdminSocketOptions): Promise<void> {
  let reply: AdminAnswer;
  try {
    const question = asObject('question', JSON.parse(await firstLine(socket)));
    const what = parseRevoked(asObject('revoke', question.revoke));
    const { at, closedStreams } = await revoke(what);
    logger.warn({ revoked: writeRevoked(what) }, 'revoked by the operator');
    reply = { ok: true, at_ms: at, closed_streams: closedStreams };
  } catch (error) {
    reply =
      error instanceof GranttyError
        ? { ok: false, reason: error.reason, message: error.message }
        : { ok: false, reason: 'FIELD_INVALID', message: 'this is not a question' };
  }
  socket.end(`${JSON.stringify(reply)}\n`);
}

/** What comes before the first newline. @throws Error when it is too long or does not come */
export function firstLine(socket: Socket, timeoutMs = QUESTION_TIMEOUT_MS): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = Buffer.alloc(0);
    const fail = (why: string) => () => reject(new Error(why));
    socket.setTimeout(timeoutMs, fail('nothing came'));
    socket.on('error', reject);
    socket.on('end', fail('it ended too early'));
    socket.on('close', fail('it ended too early'));
    socket.on('data', (chunk: Buffer) => {
      text = Buffer.concat([text, chunk]);
      const end = text.indexOf('\n');
      if (end >= 0) resolve(text.toString('utf8', 0, end));
      else if (text.length > MAX_ADMIN_BYTES) fail('it is too long')();
    });
  });
}

/** Left by a server that was killed: of those that live, only one can hold the state directory. */
async function removeStale(path: string): Promise<void> {
  try {
    if (!(await lstat(path)).isSocket()) {
      throw new Error(`${path} is not a socket; take it out of the way`);
    }
    await unlink(path);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
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
