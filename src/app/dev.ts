/** What `serve --dev` needs and makes by itself: certificates, an issuer key, a token kept fresh. */
import { X509Certificate } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { JWK } from 'jose';
import { generateIssuerKey, mintToken, publicJwks } from '../auth/mint.js';
import { capabilities } from '../core/capability.js';
import { errorCode } from '../core/errors.js';
import { GRANT_TYPE } from '../core/grant.js';
import type { Name } from '../core/names.js';
import { ensurePrivateDir, removeTemporary, writeFileAtomic } from '../store/files.js';
import { makeDevelopmentCertificates } from './certificates.js';
import { type Configuration, checkConfiguration } from './config.js';
import { ConfigurationError } from './configurationError.js';
import { isLoopback, type ListenAddress } from './listen.js';

/** Issuer and audience of a development server; the defaults of `ctx grant mint`. */
export const DEV_ISSUER = 'urn:grantty:dev';
export const DEV_AUDIENCE = 'urn:grantty:dev';

/** Seconds that a token lives, and milliseconds after which a new one takes its place. */
const TOKEN_TTL_SECONDS = 3600;
const TOKEN_RENEWAL_MS = 20 * 60_000;

const CERTIFICATE_DAYS = 90;
/** Milliseconds of validity that certificates must have left at start. */
const CERTIFICATE_MARGIN_MS = 7 * 24 * 3600_000;

/** Names that a server on loopback is reached by. */
const LOOPBACK_HOSTS = ['localhost', '127.0.0.1', '::1'];

/** The files below `<state-dir>/dev`. */
export interface DevFiles {
  readonly dir: string;
  readonly ca: string;
  readonly serverCert: string;
  readonly serverKey: string;
  readonly clientCert: string;
  readonly clientKey: string;
  /** The private key that signs tokens. */
  readonly issuerKey: string;
  readonly jwks: string;
  readonly token: string;
  /** To be sourced by a shell; there as long as the server is ready. */
  readonly env: string;
}

export function devFiles(stateDir: string): DevFiles {
  const dir = join(stateDir, 'dev');
  return {
    dir,
    ca: join(dir, 'ca.pem'),
    serverCert: join(dir, 'server.pem'),
    serverKey: join(dir, 'server.key'),
    clientCert: join(dir, 'client.pem'),
    clientKey: join(dir, 'client.key'),
    issuerKey: join(dir, 'issuer.jwk'),
    jwks: join(dir, 'jwks.json'),
    token: join(dir, 'token'),
    env: join(dir, 'env'),
  };
}

/** @throws ConfigurationError for an address that other hosts could reach */
export function requireDevAddress({ host }: ListenAddress): void {
  if (isLoopback(host)) return;
  throw new ConfigurationError(
    `--dev listens on loopback only, and ${host} is not: its keys are made for development`,
  );
}

/** Makes what is missing or about to expire. Before any terminal exists. */
export async function prepareDev(stateDir: string): Promise<DevFiles> {
  const files = devFiles(stateDir);
  await ensurePrivateDir(files.dir);
  await removeTemporary(files.dir);
  await rm(files.env, { force: true });
  if (!(await certificatesHold(files))) await makeCertificates(files);
  const key = await issuerKey(files);
  await writeFileAtomic(files.jwks, `${JSON.stringify(publicJwks(key))}\n`);
  return files;
}

/** The configuration of a development server. */
export function devConfiguration(files: DevFiles): Configuration {
  return checkConfiguration('--dev', {
    audience: DEV_AUDIENCE,
    tls: { cert: files.serverCert, key: files.serverKey, client_ca: files.ca },
    issuers: [{ issuer: DEV_ISSUER, jwks_file: files.jwks }],
    run_as: { mode: 'shared-uid' },
    // Its log shares a terminal with the person who tries it.
    log: { level: 'warn' },
  });
}

/**
 * Writes a token of all rights over the owner's terminals, and until disposal another one long
 * before it ends. Resolves when the first is in its file.
 */
export async function keepToken(
  files: DevFiles,
  owner: Name,
  onFailure: (error: unknown) => void,
  renewalMs = TOKEN_RENEWAL_MS,
): Promise<AsyncDisposable> {
  const renew = async () => {
    const key: JWK = JSON.parse(await readFile(files.issuerKey, 'utf8'));
    await writeFileAtomic(files.token, `${await devToken(key, owner, Date.now())}\n`);
  };
  await renew();
  let latest = Promise.resolve();
  const timer = setInterval(() => {
    latest = renew().catch(onFailure);
  }, renewalMs).unref();
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await latest;
    },
  };
}

export function devToken(key: JWK, owner: Name, now: number): Promise<string> {
  return mintToken({
    key,
    issuer: DEV_ISSUER,
    audience: DEV_AUDIENCE,
    subject: 'developer',
    ttl: TOKEN_TTL_SECONDS,
    grants: [
      {
        type: GRANT_TYPE,
        id: 'dev',
        actions: capabilities,
        // Named exactly: no pattern reaches the owner 0.
        resource: { owner, agent: '*', session: '*', terminal: '*' },
        constraints: { env_allow: ['*'] },
      },
    ],
    now,
  });
}

/** Written last: whoever waits for this file finds a server that answers. */
export async function announceDev(files: DevFiles, address: string, owner: Name): Promise<void> {
  const variables = {
    GRANTTY_STATE_DIR: dirname(files.dir),
    GRANTTY_ADDRESS: address,
    GRANTTY_CA: files.ca,
    GRANTTY_TOKEN_FILE: files.token,
    GRANTTY_OWNER: owner,
    GRANTTY_ISSUER_KEY: files.issuerKey,
  };
  const lines = Object.entries(variables).map(([name, value]) => `export ${name}=${quote(value)}`);
  await writeFileAtomic(files.env, `${lines.join('\n')}\n`);
}

export async function retractDev(files: DevFiles): Promise<void> {
  await rm(files.env, { force: true });
}

/** One word to a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

async function certificatesHold(files: DevFiles): Promise<boolean> {
  try {
    const cert = new X509Certificate(await readFile(files.serverCert));
    return Date.parse(cert.validTo) - Date.now() > CERTIFICATE_MARGIN_MS;
  } catch {
    // Missing or unreadable: new ones are made.
    return false;
  }
}

/** The server's certificate last: it says that the others are there. */
async function makeCertificates(files: DevFiles): Promise<void> {
  const { ca, server, client } = makeDevelopmentCertificates({
    hosts: LOOPBACK_HOSTS,
    clientName: 'grantty development client',
    days: CERTIFICATE_DAYS,
  });
  await rm(files.serverCert, { force: true });
  await writeFileAtomic(files.ca, ca);
  await writeFileAtomic(files.clientKey, client.key);
  await writeFileAtomic(files.clientCert, client.cert);
  await writeFileAtomic(files.serverKey, server.key);
  await writeFileAtomic(files.serverCert, server.cert);
}

async function issuerKey(files: DevFiles): Promise<JWK> {
  try {
    return JSON.parse(await readFile(files.issuerKey, 'utf8'));
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
  const { privateJwk } = await generateIssuerKey();
  await writeFileAtomic(files.issuerKey, `${JSON.stringify(privateJwk)}\n`);
  return privateJwk;
}
