/** Revocation where processes are killed or hang: `ctx serve` and its supervisor on their own. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { revokeOnHost } from '../../src/app/hostRevocation.js';
import type { Client } from '../../src/client/connect.js';
import { CTX, startDevServer } from '../support/devServer.js';
import { filesWith } from '../support/filesWith.js';

const run = promisify(execFile);

describe('a revocation', () => {
  let stateDir: string;

  beforeEach(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'grantty-revoked-'));
  });

  afterEach(async () => {
    await run(process.execPath, [CTX, 'supervise', '--stop', '--state-dir', stateDir]);
    await rm(stateDir, { recursive: true });
  });

  /** A token that can do all that the client's can. */
  async function delegate(client: Client, actor: string) {
    const { grants } = await client.grants.introspect({});
    const parts = grants.map((grant) => ({ ...grant, parentGrantId: grant.id }));
    const { token, id } = await client.grants.delegate({ actor, grants: parts });
    return { token, id: { issuer: id?.issuer ?? '', jti: id?.jti ?? '' } };
  }

  async function reasonOf(call: Promise<unknown>): Promise<unknown> {
    return call.then(
      () => 'OK',
      (error: { reason?: unknown }) => error.reason,
    );
  }

  const use = (client: Client, token: string) => reasonOf(client.grants.introspect({}, { token }));

  it('that was answered survives kill -9, and so does one by the operator without a server', async () => {
    await using first = await startDevServer(stateDir);
    const root = await first.client();
    const [answered, offline] = [await delegate(root, 'a'), await delegate(root, 'b')];
    await root.grants.revoke({ token: answered.id });
    root.close();
    await first.end('SIGKILL');
    const byHost = await revokeOnHost(stateDir, { kind: 'token', ...offline.id });
    expect(byHost.closedStreams).toBeUndefined();

    await using second = await startDevServer(stateDir);
    const again = await second.client();
    expect(await use(again, answered.token)).toBe('GRANT_REVOKED');
    expect(await use(again, offline.token)).toBe('GRANT_REVOKED');
    expect(await reasonOf(again.grants.introspect({}))).toBe('OK');

    const online = await delegate(again, 'c');
    expect(await revokeOnHost(stateDir, { kind: 'token', ...online.id })).toMatchObject({
      closedStreams: 0,
    });
    expect(await use(again, online.token)).toBe('GRANT_REVOKED');

    // No file of the server holds a token that it has signed.
    for (const { token } of [answered, offline, online]) {
      const signature = token.slice(token.lastIndexOf('.') + 1);
      expect(await filesWith(stateDir, signature)).toEqual([]);
    }
  });

  it('says UNAVAILABLE while the supervisor is frozen, and is in force all the same', async () => {
    await using server = await startDevServer(stateDir);
    const root = await server.client();
    const child = await delegate(root, 'a');
    const supervisor = Number(await readFile(join(stateDir, 'supervisor.pid'), 'utf8'));
    process.kill(supervisor, 'SIGSTOP');
    try {
      expect(await reasonOf(root.grants.revoke({ token: child.id }))).toBe(
        'SUPERVISOR_UNAVAILABLE',
      );
      expect(await use(root, child.token)).toBe('GRANT_REVOKED');
    } finally {
      process.kill(supervisor, 'SIGCONT');
    }
    expect(await root.grants.revoke({ token: child.id })).toMatchObject({ revokedTokens: 0 });
    expect(await use(root, child.token)).toBe('GRANT_REVOKED');
  });
});
