/** Development certificates: an authority, a server and a client. Never for production. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { errorCode } from '../core/errors.js';

export interface KeyPair {
  /** PEM of the certificate. */
  readonly cert: string;
  /** PEM of the private key. Secret. */
  readonly key: string;
}

export interface DevelopmentCertificates {
  /** PEM of the authority. Its key is forgotten: nothing else can be signed by it. */
  readonly ca: string;
  readonly server: KeyPair;
  readonly client: KeyPair;
}

export interface CertificateOptions {
  /** Names and addresses of the server. */
  readonly hosts: readonly string[];
  /** Common name of the client. */
  readonly clientName: string;
  readonly days: number;
}

/**
 * Makes new keys and certificates (P-256) by openssl(1), 3.0 or later. Blocks the event loop for
 * some 50 ms: for start-up and scripts only.
 * @throws Error that says what to do when openssl is missing or fails
 */
export function makeDevelopmentCertificates(options: CertificateOptions): DevelopmentCertificates {
  const dir = mkdtempSync(join(tmpdir(), 'grantty-certs-'));
  try {
    writeFileSync(join(dir, CONFIGURATION_FILE), EMPTY_CONFIGURATION);
    const names = options.hosts.map((host) => (isIP(host) ? `IP:${host}` : `DNS:${host}`));
    const { days } = options;
    const authority = issue(dir, {
      name: 'ca',
      subject: 'grantty development authority',
      extensions: ['basicConstraints=critical,CA:TRUE,pathlen:0', 'keyUsage=critical,keyCertSign'],
      days,
    });
    const server = issue(dir, {
      name: 'server',
      subject: 'grantty development server',
      extensions: [...LEAF, 'extendedKeyUsage=serverAuth', `subjectAltName=${names.join(',')}`],
      days,
      signer: 'ca',
    });
    const client = issue(dir, {
      name: 'client',
      subject: options.clientName,
      extensions: [...LEAF, 'extendedKeyUsage=clientAuth'],
      days,
      signer: 'ca',
    });
    return { ca: authority.cert, server, client };
  } finally {
    rmSync(dir, { recursive: true });
  }
}

const LEAF = ['basicConstraints=critical,CA:FALSE', 'keyUsage=critical,digitalSignature'];

/** In place of the host's own file, which could ask for or add anything. */
const CONFIGURATION_FILE = 'openssl.cnf';
const EMPTY_CONFIGURATION = '[req]\ndistinguished_name = dn\n[dn]\n';

interface Issue {
  /** Base name of its files. */
  readonly name: string;
  readonly subject: string;
  readonly extensions: readonly string[];
  readonly days: number;
  /** Base name of the authority's files. Absent: it signs itself. */
  readonly signer?: string;
}

function issue(dir: string, { name, subject, extensions, days, signer }: Issue): KeyPair {
  openssl(dir, [
    ...['req', '-x509', '-config', CONFIGURATION_FILE],
    ...['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-noenc'],
    ...['-keyout', `${name}.key`, '-out', `${name}.pem`],
    ...['-subj', `/CN=${subject}`, '-days', String(days)],
    ...extensions.flatMap((extension) => ['-addext', extension]),
    ...(signer === undefined ? [] : ['-CA', `${signer}.pem`, '-CAkey', `${signer}.key`]),
  ]);
  const read = (suffix: string) => readFileSync(join(dir, `${name}.${suffix}`), 'utf8');
  return { cert: read('pem'), key: read('key') };
}

function openssl(dir: string, args: readonly string[]): void {
  const { error, status, stderr } = spawnSync('openssl', args, {
    cwd: dir,
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  if (status === 0) return;
  if (errorCode(error) === 'ENOENT') {
    throw new Error(
      'development certificates are made by openssl, which is not installed: install it, or name certificates of your own in a configuration',
      { cause: error },
    );
  }
  throw new Error(`openssl failed (3.0 or later is needed): ${stderr.trim()}`, { cause: error });
}
