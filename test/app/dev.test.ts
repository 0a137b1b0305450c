import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, watch, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  announceDev,
  DEV_AUDIENCE,
  DEV_ISSUER,
  type DevFiles,
  devConfiguration,
  keepToken,
  prepareDev,
  requireDevAddress,
  retractDev,
} from '../../src/app/dev.js';
import { holdStateDir } from '../../src/app/heldStateDir.js';
import { KeySet } from '../../src/auth/keys.js';
import { TokenVerifier } from '../../src/auth/token.js';
import { DEFAULT_AUDIENCE, DEFAULT_ISSUER } from '../../src/cli/commands/grantMint.js';
import { capabilities } from '../../src/core/capability.js';
import { findGrant } from '../../src/core/grant.js';
import { parseName } from '../../src/core/names.js';

const owner = parseName('owner', '0');

let stateDir: string;
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), 'grantty-dev-'));
});
afterEach(() => rm(stateDir, { recursive: true }));

const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);

async function prepared(): Promise<DevFiles> {
  const files = await prepareDev(stateDir);
  await using _token = await keepToken(files, owner, fail);
  return files;
}

function fail(error: unknown): void {
  throw error;
}

describe('the files of a development server', () => {
  it('are private, and there is no readiness before it is announced', async () => {
    const files = await prepared();
    expect(await modeOf(files.dir)).toBe('700');
    const names = (await readdir(files.dir)).sort();
    expect(names).toEqual([
      'ca.pem',
      'client.key',
      'client.pem',
      'issuer.jwk',
      'jwks.json',
      'server.key',
      'server.pem',
      'token',
    ]);
    for (const name of names)
      expect(`${name} ${await modeOf(join(files.dir, name))}`).toBe(`${name} 600`);
  });

  it('hold certificates of one authority, the server by its names on loopback', async () => {
    const files = await prepared();
    const [ca, server, client] = await Promise.all(
      [files.ca, files.serverCert, files.clientCert].map(
        async (path) => new X509Certificate(await readFile(path)),
      ),
    );
    if (!ca || !server || !client) throw new Error('a certificate is missing');
    expect([ca.ca, server.ca, client.ca]).toEqual([true, false, false]);
    expect(server.verify(ca.publicKey)).toBe(true);
    expect(client.verify(ca.publicKey)).toBe(true);
    expect(server.checkHost('localhost')).toBe('localhost');
    expect(server.checkIP('127.0.0.1')).toBe('127.0.0.1');
    expect(server.checkIP('::1')).toBe('::1');
  });

  it('hold no private part in the key set that the server reads', async () => {
    const files = await prepared();
    const { keys } = JSON.parse(await readFile(files.jwks, 'utf8'));
    expect(keys).toHaveLength(1);
    expect(keys[0]).not.toHaveProperty('d');
  });

  it('stay over a restart', async () => {
    const files = await prepared();
    const before = await Promise.all(
      [files.serverCert, files.issuerKey].map((path) => readFile(path)),
    );
    await prepared();
    const after = await Promise.all(
      [files.serverCert, files.issuerKey].map((path) => readFile(path)),
    );
    expect(after).toEqual(before);
  });

  it('are made anew where the certificate is broken', async () => {
    const files = await prepared();
    await writeFile(files.serverCert, 'not a certificate');
    await prepared();
    expect(new X509Certificate(await readFile(files.serverCert)).ca).toBe(false);
  });

  it('are refused beyond loopback', async () => {
    expect(() => requireDevAddress({ host: '0.0.0.0', port: 1 })).toThrow('loopback');
    expect(() => requireDevAddress({ host: '127.0.0.1', port: 1 })).not.toThrow();
  });

  it('hold a token that the server takes, for every capability over the one owner, root too', async () => {
    const files = await prepared();
    const keys = new KeySet([{ issuer: DEV_ISSUER, jwksFile: files.jwks }]);
    await keys.reload();
    const verifier = new TokenVerifier({ keys, audience: DEV_AUDIENCE, clock: Date.now });
    const token = await verifier.verify((await readFile(files.token, 'utf8')).trim());
    const now = Date.now() / 1000;
    const name = (text: string) => parseName('name', text);
    const target = { owner, agent: name('a'), session: name('s'), id: name('t') };
    for (const action of capabilities) {
      expect(findGrant(token.grants, { action, target }, now)).toBeDefined();
      const other = { ...target, owner: name('1000') };
      expect(findGrant(token.grants, { action, target: other }, now)).toBeUndefined();
    }
  });

  it('hold a fresh token time and again, never half a one', async () => {
    const files = await prepareDev(stateDir);
    await using _token = await keepToken(files, owner, fail, 5);
    const first = await readFile(files.token, 'utf8');
    for await (const _ of watch(files.dir)) {
      const now = await readFile(files.token, 'utf8');
      expect(now).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/);
      if (now !== first) break;
    }
  });

  it('end in an environment to be sourced, which goes when the server does', async () => {
    const files = await prepared();
    await announceDev(files, '127.0.0.1:4321', owner);
    expect(await modeOf(files.env)).toBe('600');
    const script =
      '. "$1"; printf "%s|" "$GRANTTY_ADDRESS" "$GRANTTY_CA" "$GRANTTY_TOKEN_FILE" "$GRANTTY_OWNER" "$GRANTTY_STATE_DIR"';
    const sourced = execFileSync('/bin/sh', ['-c', script, 'sh', files.env], { encoding: 'utf8' });
    expect(sourced).toBe(`127.0.0.1:4321|${files.ca}|${files.token}|0|${stateDir}|`);
    await retractDev(files);
    expect(await readdir(files.dir)).not.toContain('env');
  });

  it('lose an environment that a crashed server left, before anything else', async () => {
    const files = await prepared();
    await announceDev(files, '127.0.0.1:4321', owner);
    await prepareDev(stateDir);
    expect(await readdir(files.dir)).not.toContain('env');
  });

  it('make a configuration that is complete', async () => {
    expect(devConfiguration(await prepared())).toMatchObject({
      audience: DEV_AUDIENCE,
      run_as: { mode: 'shared-uid' },
      limits: { connections: 1024 },
    });
  });
});

describe('ctx grant mint', () => {
  it('names the issuer and the audience of a development server where it is told nothing else', () => {
    expect([DEFAULT_ISSUER, DEFAULT_AUDIENCE]).toEqual([DEV_ISSUER, DEV_AUDIENCE]);
  });
});

describe('the state directory', () => {
  it('is held by one at a time, and free again afterwards', async () => {
    const first = await holdStateDir(stateDir);
    await expect(holdStateDir(stateDir)).rejects.toThrow(`locked by process ${process.pid}`);
    await first[Symbol.asyncDispose]();
    await using second = await holdStateDir(stateDir);
    expect(second.id).toBe(first.id);
  });
});
