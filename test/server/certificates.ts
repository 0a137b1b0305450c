/** Certificates for tests of TLS, made by the openssl tool; undefined where there is none. */
import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { certificateThumbprint } from '../../src/auth/proof.js';

const run = promisify(execFile);

export interface Certificate {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** `x5t#S256`. */
  readonly thumbprint: string;
}

export interface Certificates {
  readonly ca: Buffer;
  readonly server: Certificate;
  readonly client: Certificate;
  /** Of another authority. */
  readonly stranger: Certificate;
}

export async function makeCertificates(): Promise<Certificates | undefined> {
  const dir = await mkdtemp(join(tmpdir(), 'grantty-tls-'));
  try {
    await run('openssl', ['version']);
  } catch {
    await rm(dir, { recursive: true, force: true });
    return undefined;
  }
  try {
    const ca = await authority(dir, 'ca');
    await authority(dir, 'other');
    return {
      ca,
      server: await issue(dir, 'ca', 'server', 'subjectAltName=DNS:localhost,IP:127.0.0.1'),
      client: await issue(dir, 'ca', 'client', 'extendedKeyUsage=clientAuth'),
      stranger: await issue(dir, 'other', 'stranger', 'extendedKeyUsage=clientAuth'),
    };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

async function authority(dir: string, name: string): Promise<Buffer> {
  const file = (ending: string) => join(dir, `${name}.${ending}`);
  const files = ['-keyout', file('key'), '-out', file('crt')];
  await run('openssl', ['req', '-x509', ...NEW_KEY, ...files, '-subj', `/CN=${name}`]);
  return readFile(file('crt'));
}

async function issue(
  dir: string,
  issuer: string,
  name: string,
  extension: string,
): Promise<Certificate> {
  const file = (of: string, ending: string) => join(dir, `${of}.${ending}`);
  const request = ['-keyout', file(name, 'key'), '-out', file(name, 'csr'), '-subj', `/CN=${name}`];
  await run('openssl', ['req', ...NEW_KEY, ...request]);
  await writeFile(file(name, 'ext'), extension);
  await run('openssl', [
    ...['x509', '-req', '-in', file(name, 'csr'), '-out', file(name, 'crt'), '-days', '2'],
    ...['-CA', file(issuer, 'crt'), '-CAkey', file(issuer, 'key'), '-CAcreateserial'],
    ...['-extfile', file(name, 'ext')],
  ]);
  const cert = await readFile(file(name, 'crt'));
  return {
    cert,
    key: await readFile(file(name, 'key')),
    thumbprint: certificateThumbprint(new X509Certificate(cert).raw),
  };
}
