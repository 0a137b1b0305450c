/** Whether a server could listen somewhere, found out before it makes anything. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { errorCode } from '../core/errors.js';
import { lockHolder } from '../store/lock.js';
import { ConfigurationError } from './configurationError.js';
import { SERVER_LOCK, servedElsewhere } from './heldStateDir.js';
import { formatAddress, type ListenAddress } from './listen.js';

const mistakes: Readonly<Record<string, string>> = {
  EADDRNOTAVAIL: 'this host has no such address',
  ENOTFOUND: 'no such host is known',
  EAI_AGAIN: 'the name of the host could not be looked up',
  EACCES: 'this user may not listen on a port that low',
};

/**
 * Listens for a moment; who connects in it is sent away.
 * @throws ConfigurationError for an address that is none here; Error for one that is in use, which
 * names the server that has the state directory where there is one
 */
export async function requireFreeAddress(address: ListenAddress, stateDir: string): Promise<void> {
  const server = createServer((socket) => socket.destroy());
  try {
    server.listen(address);
    await once(server, 'listening');
  } catch (error) {
    const holder = await lockHolder(join(stateDir, SERVER_LOCK)).catch(() => undefined);
    throw holder ? servedElsewhere(holder) : listenFailure(address, error);
  } finally {
    if (server.listening) {
      server.close();
      await once(server, 'close');
    }
  }
}

function listenFailure(address: ListenAddress, error: unknown): Error {
  const where = formatAddress(address);
  const code = errorCode(error) ?? '';
  if (code === 'EADDRINUSE') {
    return new Error(
      `listen: ${where} is in use by another process; end that, or give another address by --listen or listen`,
      { cause: error },
    );
  }
  const why = mistakes[code] ?? (error instanceof Error ? error.message : String(error));
  return new ConfigurationError(
    `listen: ${where} cannot be listened on: ${why}; give another address by --listen or listen`,
  );
}
