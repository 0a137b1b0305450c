import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startDevServer } from '../support/devServer.js';
import { watchAll } from '../support/streams.js';

const inProcess = ['--supervisor', 'in-process'];

/** Milliseconds for a test that starts servers, on a busy host too. */
const PATIENCE_MS = 120_000;

describe('a server whose supervisor is in its own process', () => {
  let stateDir: string;

  beforeEach(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'grantty-restart-'));
  });

  afterEach(() => rm(stateDir, { recursive: true }));

  it(
    'refuses a second server on the same state directory, and says who holds it',
    async () => {
      await using first = await startDevServer(stateDir, inProcess);
      await expect(startDevServer(stateDir, inProcess)).rejects.toThrow(String(first.pid));
    },
    PATIENCE_MS,
  );

  it(
    'ends in order on SIGTERM, and its terminals with it',
    async () => {
      await using server = await startDevServer(stateDir, inProcess);
      const client = await server.client();
      await client.terminals.createTerminal({
        agent: 'a',
        id: 'ended',
        command: ['sleep', '1000'],
      });
      const watching = watchAll(client, { terminal: { id: 'ended' } }).catch((error) => error);
      expect(await server.end('SIGTERM')).toBe(0);
      client.close();
      await watching;
      const owner = String(process.getuid?.() ?? 0);
      const dir = join(stateDir, `home/${owner}/agent/a/session/default/terminal/ended`);
      const meta = JSON.parse(await readFile(join(dir, 'meta.json'), 'utf8'));
      expect(meta).toMatchObject({ state: 'exited', signal: 'SIGTERM', exit_code: 143 });
    },
    PATIENCE_MS,
  );
});
