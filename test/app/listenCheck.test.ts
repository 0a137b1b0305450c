/** Whether a server could listen somewhere, before it makes anything. */
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { holdStateDir } from '../../src/app/heldStateDir.js';
import { requireFreeAddress } from '../../src/app/listenCheck.js';
import { temporaryDir } from '../store/temporaryDir.js';

async function listening() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { port, close: () => once(server.close(), 'close') };
}

describe('an address to listen on', () => {
  it('is free again after it was looked at', async () => {
    const { port, close } = await listening();
    await close();
    await requireFreeAddress({ host: '127.0.0.1', port }, '/none');
    await requireFreeAddress({ host: '127.0.0.1', port }, '/none');
  });

  it('is refused while another process has it, as no mistake of the configuration', async () => {
    await using dir = await temporaryDir();
    const { port, close } = await listening();
    const asked = requireFreeAddress({ host: '127.0.0.1', port }, join(dir.path, 'state'));
    await expect(asked).rejects.toMatchObject({
      name: 'Error',
      message: `listen: 127.0.0.1:${port} is in use by another process; end that, or give another address by --listen or listen`,
    });
    expect(await readdir(dir.path)).toEqual([]);
    await close();
  });

  it('is refused by the name of the server that has the state directory, where it is that', async () => {
    await using dir = await temporaryDir();
    await using _held = await holdStateDir(dir.path);
    const { port, close } = await listening();
    await expect(requireFreeAddress({ host: '127.0.0.1', port }, dir.path)).rejects.toThrow(
      `server.lock is locked by process ${process.pid}: another server serves from this state directory; end`,
    );
    await close();
  });

  it('is refused as a mistake when this host has no such address', async () => {
    await expect(
      requireFreeAddress({ host: '203.0.113.1', port: 0 }, '/none'),
    ).rejects.toMatchObject({
      name: 'ConfigurationError',
      message: expect.stringContaining('this host has no such address'),
    });
  });
});
