/** Development certificates: an authority, a server and a client. Never for production. */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIP } from 'node:net';
import * as der from './der.js';

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

/** Makes new keys (P-256) and certificates (RFC 5280). */
export function makeDevelopmentCertificates(options: CertificateOptions): DevelopmentCertificates {
  const authority = newIdentity('grantty development authority');
  const issue = (subject: Identity, extensions: readonly Buffer[]): KeyPair => ({
    cert: certificate({ subject, issuer: authority, days: options.days, extensions }),
    key: String(subject.privateKey.export({ type: 'pkcs8', format: 'pem' })),
  });
  const { cert: ca } = issue(authority, [
    critical(OID.basicConstraints, der.sequence(der.boolean(true), der.integer(PATH_LENGTH))),
    critical(OID.keyUsage, KEY_USAGE.keyCertSign),
  ]);
  const leaf = (purpose: string) => [
    critical(OID.basicConstraints, der.sequence()),
    critical(OID.keyUsage, KEY_USAGE.digitalSignature),
    extension(OID.extendedKeyUsage, der.sequence(der.objectIdentifier(purpose))),
    extension(OID.authorityKeyId, der.sequence(der.implicit(0, authority.keyId))),
  ];
  return {
    ca,
    server: issue(newIdentity('grantty development server'), [
      ...leaf(OID.serverAuth),
      extension(OID.subjectAltName, der.sequence(...options.hosts.map(generalName))),
    ]),
    client: issue(newIdentity(options.clientName), leaf(OID.clientAuth)),
  };
}

const OID = {
  commonName: '2.5.4.3',
  subjectKeyId: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyId: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
} as const;

/** Bits 0 and 5 of KeyUsage (RFC 5280, section 4.2.1.3). */
const KEY_USAGE = {
  digitalSignature: der.bitString(Buffer.of(0x80), 7),
  keyCertSign: der.bitString(Buffer.of(0x04), 2),
};

/** Certificates between the authority and a leaf: none. */
const PATH_LENGTH = Buffer.of(0);
/** X.509 counts from 0: version 3, the one with extensions. */
const VERSION_3 = 2;
const SERIAL_BYTES = 16;
/** Milliseconds that a certificate is valid before it is made, for clocks that are behind. */
const BACKDATE_MS = 60_000;
const DAY_MS = 24 * 3600_000;

interface Identity {
  readonly name: Buffer;
  readonly privateKey: KeyObject;
  /** SubjectPublicKeyInfo. */
  readonly publicKey: Buffer;
  readonly keyId: Buffer;
}

function newIdentity(commonName: string): Identity {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const info = publicKey.export({ type: 'spki', format: 'der' });
  const attribute = der.sequence(der.objectIdentifier(OID.commonName), der.utf8String(commonName));
  return {
    name: der.sequence(der.setOf(attribute)),
    privateKey,
    publicKey: info,
    keyId: createHash('sha256').update(info).digest().subarray(0, 20),
  };
}

interface CertificateSpec {
  readonly subject: Identity;
  readonly issuer: Identity;
  readonly days: number;
  readonly extensions: readonly Buffer[];
}

/** PEM of a certificate as RFC 5280, section 4.1, has it. */
function certificate({ subject, issuer, days, extensions }: CertificateSpec): string {
  const now = Date.now();
  const algorithm = der.sequence(der.objectIdentifier(OID.ecdsaWithSha256));
  const validity = [now - BACKDATE_MS, now + days * DAY_MS].map((ms) => new Date(ms));
  const body = der.sequence(
    der.explicit(0, der.integer(Buffer.of(VERSION_3))),
    der.integer(randomBytes(SERIAL_BYTES)),
    algorithm,
    issuer.name,
    der.sequence(...validity.map(der.time)),
    subject.name,
    subject.publicKey,
    der.explicit(
      3,
      der.sequence(...extensions, extension(OID.subjectKeyId, der.octetString(subject.keyId))),
    ),
  );
  const signature = der.bitString(sign('sha256', body, issuer.privateKey));
  const lines =
    der
      .sequence(body, algorithm, signature)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

function extension(id: string, value: Uint8Array): Buffer {
  return der.sequence(der.objectIdentifier(id), der.octetString(value));
}

/** Who does not know it must refuse the certificate. */
function critical(id: string, value: Uint8Array): Buffer {
  return der.sequence(der.objectIdentifier(id), der.boolean(true), der.octetString(value));
}

/** dNSName or iPAddress (RFC 5280, section 4.2.1.6). */
function generalName(host: string): Buffer {
  switch (isIP(host)) {
    case 4:
      return der.implicit(7, Buffer.from(host.split('.').map(Number)));
    case 6:
      return der.implicit(7, ipv6Bytes(host));
    default:
      return der.implicit(2, Buffer.from(host));
  }
}

function ipv6Bytes(address: string): Buffer {
  // The parser of URLs gives the shortest form, an IPv4 tail in hexadecimal too.
  const shortest = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = [], tail = []] = shortest
    .split('::')
    .map((side) => side.split(':').filter(Boolean));
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => '0');
  const words = [...head, ...zeros, ...tail].map((word) => Number.parseInt(word, 16));
  return Buffer.from(words.flatMap((word) => [word >> 8, word & 0xff]));
}
