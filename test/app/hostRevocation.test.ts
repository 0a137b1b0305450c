/** Revocation by the operator: through the server that runs, and without one. */
import { once } from 'node:events';
import { lstat, readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { pino } from 'pino';
import { openAdminSocket } from '../../src/app/adminSocket.js';
import { authorityFiles, openAuthority } from '../../src/app/authority.js';
import { holdStateDir } from '../../src/app/heldStateDir.js';
import { revokeOnHost } from '../../src/app/hostRevocation.js';
import type { ChangeRecord } from '../../src/audit/changeRecord.js';
import { generateIssuerKey } from '../../src/auth/mint.js';
import { GranttyError } from '../../src/core/errors.js';
import type { Revoked } from '../../src/core/revoked.js';
import { ensurePrivateDir } from '../../src/store/files.js';
import { type TemporaryDir, temporaryDir } from '../store/temporaryDir.js';

const what: Revoked = { kind: 'token', issuer: 'i', jti: 'j' };
const logger = pino({ level: 'silent' });
const own = { issuers: [], delegation: { max_depth: 8 } };

let dir: TemporaryDir;
let stateDir: string;

beforeEach(async () => {
  dir = await temporaryDir();
  stateDir = join(dir.path, 's');
});

afterEach(async () => {
  await dir[Symbol.asyncDispose]();
});

/** A server as far as the operator sees one. */
async function startServer(
  revoke: (what: Revoked) => Promise<{ at: number; closedStreams: number }>,
) {
  const held = await holdStateDir(stateDir);
  const files = authorityFiles(held.path);
  await ensurePrivateDir(files.dir);
  const socket = await openAdminSocket({ path: files.adminSocket, revoke, logger });
  return {
    files,
    async [Symbol.asyncDispose]() {
      await socket[Symbol.asyncDispose]();
      await held[Symbol.asyncDispose]();
    },
  };
}

describe('a revocation by the operator', () => {
  it('goes through the server that runs, and is answered when that has answered', async () => {
    const seen: Revoked[] = [];
    await using _server = await startServer(async (asked) => {
      seen.push(asked);
      return { at: 123, closedStreams: 4 };
    });
    expect(await revokeOnHost(stateDir, what)).toEqual({ at: 123, closedStreams: 4 });
    expect(seen).toEqual([what]);
  });

  it('fails as the server says', async () => {
    await using _server = await startServer(async () => {
      throw new GranttyError('SUPERVISOR_UNAVAILABLE', 'not confirmed');
    });
    await expect(revokeOnHost(stateDir, what)).rejects.toMatchObject({
      reason: 'SUPERVISOR_UNAVAILABLE',
      message: 'not confirmed',
    });
  });

  it('without a server waits for the next one, which puts it on record', async () => {
    await (await holdStateDir(stateDir))[Symbol.asyncDispose]();
    const { at, closedStreams } = await revokeOnHost(stateDir, what);
    expect(closedStreams).toBeUndefined();
    await using held = await holdStateDir(stateDir);
    await using authority = await openAuthority({ stateDir: held, config: own, logger });
    expect(authority.revocations.isTokenRevoked('i', 'j')).toBe(true);
    const changes: ChangeRecord[] = [];
    const audit = {
      intent: async () => '',
      outcome: () => {},
      change: async (change: ChangeRecord) => {
        changes.push(change);
      },
    };
    await authority.record(audit);
    expect(changes.at(-1)).toEqual({ change: 'revoked', timeMs: at, what });
    changes.length = 0;
    await authority.record(audit);
    expect(changes.map(({ change }) => change)).toEqual(['keys']);
  });

  it('does not make a state directory of a path that is none', async () => {
    await expect(revokeOnHost(stateDir, what)).rejects.toThrow('is not a state directory');
    await expect(lstat(stateDir)).rejects.toThrow();
  });

  it('that nobody answers is not taken for done', async () => {
    await using _held = await holdStateDir(stateDir);
    await expect(revokeOnHost(stateDir, what)).rejects.toThrow('gives no answer');
  });
});

describe('the admin socket', () => {
  it('can be reached by its user only, and takes the place of one that was left', async () => {
    const revoke = async () => ({ at: 1, closedStreams: 0 });
    await using server = await startServer(revoke);
    const { mode } = await lstat(server.files.adminSocket);
    expect(mode & 0o777).toBe(0o600);
    const again = await openAdminSocket({ path: server.files.adminSocket, revoke, logger });
    await again[Symbol.asyncDispose]();
  });

  it.each(['{}', 'nonsense', '{"revoke":{}}', '{"revoke":{"revoked":"all","iss":"i"}}'])(
    'refuses %s, and goes on',
    async (question) => {
      const seen: Revoked[] = [];
      await using server = await startServer(async (asked) => {
        seen.push(asked);
        return { at: 1, closedStreams: 0 };
      });
      const socket = connect({ path: server.files.adminSocket });
      socket.write(`${question}\n`);
      let text = '';
      for await (const chunk of socket) text += chunk;
      expect(JSON.parse(text)).toMatchObject({ ok: false, reason: 'FIELD_INVALID' });
      expect(seen).toEqual([]);
      await revokeOnHost(stateDir, what);
      expect(seen).toEqual([what]);
    },
  );

  it('ends who asks too much', async () => {
    await using server = await startServer(async () => ({ at: 1, closedStreams: 0 }));
    const socket = connect({ path: server.files.adminSocket });
    socket.on('error', () => {});
    socket.write(Buffer.alloc(100_000, 'x'));
    socket.resume();
    await once(socket, 'close');
  });
});

describe('the issuer of a server', () => {
  it('keeps its key, which is private, until the key is revoked', async () => {
    await using held = await holdStateDir(stateDir);
    const first = await openAuthority({ stateDir: held, config: own, logger });
    const { issuer, keyId } = first.delegation.signer;
    await first[Symbol.asyncDispose]();
    const second = await openAuthority({ stateDir: held, config: own, logger });
    expect(second.delegation.signer.keyId).toBe(keyId);
    const path = authorityFiles(stateDir).issuerKey;
    expect((await lstat(path)).mode & 0o777).toBe(0o600);
    expect(JSON.stringify(second.keys.issuer(issuer)?.keys.get(keyId)?.written)).not.toContain(
      JSON.parse(await readFile(path, 'utf8')).d,
    );
    await second.revocations.revoke({ kind: 'key', issuer, keyId }).durable;
    await second[Symbol.asyncDispose]();
    await using third = await openAuthority({ stateDir: held, config: own, logger });
    expect(third.delegation.signer.keyId).not.toBe(keyId);
    expect(third.keys.issuer(issuer)?.keys.has(keyId)).toBe(false);
  });

  it('cannot be one that the configuration gives keys to', async () => {
    await using held = await holdStateDir(stateDir);
    const { jwks } = await generateIssuerKey();
    const jwksFile = join(dir.path, 'jwks.json');
    await writeFile(jwksFile, JSON.stringify(jwks));
    const config = {
      issuers: [{ issuer: 'https://a.test', jwks_file: jwksFile }],
      delegation: { issuer: 'https://a.test', max_depth: 8 },
    };
    await expect(openAuthority({ stateDir: held, config, logger })).rejects.toThrow(
      'a key of this server',
    );
  });

  it('goes on without an issuer whose URL is down, and not without one whose file is missing', async () => {
    await using held = await holdStateDir(stateDir);
    const url = { issuer: 'https://a.test', jwks_url: 'http://127.0.0.1:1/jwks' };
    const config = { ...own, issuers: [url] };
    await using authority = await openAuthority({ stateDir: held, config, logger });
    expect(() => authority.keys.issuer('https://a.test')).toThrow(
      expect.objectContaining({ reason: 'KEYS_UNAVAILABLE' }),
    );
    const file = { issuer: 'https://b.test', jwks_file: join(dir.path, 'missing') };
    await expect(
      openAuthority({ stateDir: held, config: { ...own, issuers: [file] }, logger }),
    ).rejects.toThrow('cannot be read');
  });
});
