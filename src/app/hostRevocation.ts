/** Revocation by the operator on the host: through the server that runs, or without one. */
import { lstat } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { RevocationList } from '../auth/revocationList.js';
import { type ErrorReason, errorReasons, GranttyError } from '../core/errors.js';
import type { Revoked } from '../core/revoked.js';
import { ensurePrivateDir } from '../store/files.js';
import { lockHolder } from '../store/lock.js';
import { type AdminAnswer, adminQuestion, firstLine } from './adminSocket.js';
import { authorityFiles } from './authority.js';
import { holdStateDir, SERVER_LOCK } from './heldStateDir.js';

export interface HostRevocation {
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  /** Absent where no server ran: the next one will honour it. */
  readonly closedStreams?: number;
}

/** Milliseconds for the server to answer: longer than it waits for its supervisor. */
const ANSWER_TIMEOUT_MS = 30_000;

/**
 * Resolves when the revocation is durable and, where a server runs, nothing under it can reach a
 * terminal any more.
 * @throws GranttyError as the server says; Error that says what to do
 */
export async function revokeOnHost(stateDir: string, what: Revoked): Promise<HostRevocation> {
  // A mistyped path must not become a new state directory in which something was revoked.
  await lstat(join(stateDir, 'state_dir.json')).catch(() => {
    throw new Error(`${stateDir} is not a state directory`);
  });
  // Only looked at first: a server that runs can revoke though nothing can be written.
  if (await lockHolder(join(stateDir, SERVER_LOCK))) {
    return askServer(authorityFiles(stateDir).adminSocket, what);
  }
  await using held = await holdStateDir(stateDir);
  const files = authorityFiles(held.path);
  await ensurePrivateDir(files.dir);
  await using list = await RevocationList.open(files.revocations, Date.now);
  const { at, durable } = list.revoke(what, true);
  await durable;
  return { at };
}

async function askServer(path: string, what: Revoked): Promise<HostRevocation> {
  const socket = connect({ path });
  try {
    socket.write(adminQuestion(what));
    const answer = JSON.parse(await firstLine(socket, ANSWER_TIMEOUT_MS)) as AdminAnswer;
    if (answer.ok) return { at: answer.at_ms, closedStreams: answer.closed_streams };
    throw new GranttyError(reasonOf(answer.reason), answer.message);
  } catch (cause) {
    if (cause instanceof GranttyError) throw cause;
    throw new Error(
      `a server runs on this state directory but gives no answer at ${path}; nothing may have been revoked: try again`,
      { cause },
    );
  } finally {
    socket.destroy();
  }
}

function reasonOf(reason: string): ErrorReason {
  return errorReasons.find((known) => known === reason) ?? 'SUPERVISOR_UNAVAILABLE';
}
