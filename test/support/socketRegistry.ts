/** A real registry behind its socket, with a client of it, for tests. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Supervisor } from '../../src/supervisor/api.js';
import type { LinkOptions } from '../../src/supervisor/socket/controlLink.js';
import { connectSupervisor } from '../../src/supervisor/socket/socketClient.js';
import { serveSupervisor } from '../../src/supervisor/socket/socketServer.js';
import { silentLog, startRegistry } from './registry.js';

export const stateDirId = 'test';

export interface SocketDir extends AsyncDisposable {
  /** In a directory of mode 0700. */
  readonly path: string;
}

export async function socketDir(): Promise<SocketDir> {
  const directory = await mkdtemp(join(tmpdir(), 'grantty-socket-'));
  return {
    path: join(directory, 'supervisor.sock'),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
}

export interface Served extends AsyncDisposable {
  readonly supervisor: Supervisor;
  readonly path: string;
}

/** `behind` on a socket, and a client of it. Disposing ends both and the socket, not `behind`. */
export async function served(
  behind: Supervisor,
  options: Partial<LinkOptions> = {},
): Promise<Served> {
  const directory = await socketDir();
  const { path } = directory;
  const log = options.log ?? silentLog;
  const server = await serveSupervisor(behind, { path, stateDirId, log });
  const supervisor = await connectSupervisor({ path, stateDirId, log, ...options });
  return {
    supervisor,
    path,
    async [Symbol.asyncDispose]() {
      await supervisor[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
      await directory[Symbol.asyncDispose]();
    },
  };
}

export async function startSocketRegistry(): Promise<
  Served & { readonly behind: Supervisor; readonly stateDir: string }
> {
  const registry = await startRegistry();
  const over = await served(registry.supervisor);
  return {
    ...over,
    behind: registry.supervisor,
    stateDir: registry.stateDir,
    async [Symbol.asyncDispose]() {
      await over[Symbol.asyncDispose]();
      await registry[Symbol.asyncDispose]();
    },
  };
}
