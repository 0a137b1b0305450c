import { spawnSync } from 'node:child_process';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { makeDevelopmentCertificates } from '../../src/app/certificates.js';
import { onPath, skipAloud } from '../support/skipAloud.js';

const made = makeDevelopmentCertificates({
  hosts: [
    'localhost',
    'terminals.example',
    '127.0.0.1',
    '::1',
    '2001:db8::7:0:1',
    '::ffff:10.1.2.3',
  ],
  clientName: 'ünïcode and all',
  days: 30,
});
const ca = new X509Certificate(made.ca);
const server = new X509Certificate(made.server.cert);
const client = new X509Certificate(made.client.cert);

describe('development certificates', () => {
  it('are signed by the one authority, which can sign leaves only', () => {
    expect([ca.ca, server.ca, client.ca]).toEqual([true, false, false]);
    for (const leaf of [ca, server, client]) {
      expect(leaf.checkIssued(ca)).toBe(true);
      expect(leaf.verify(ca.publicKey)).toBe(true);
    }
    expect(client.verify(server.publicKey)).toBe(false);
  });

  it('name the server by names and addresses', () => {
    expect(server.subjectAltName).toBe(
      [
        'DNS:localhost, DNS:terminals.example, IP Address:127.0.0.1',
        'IP Address:0:0:0:0:0:0:0:1, IP Address:2001:DB8:0:0:0:7:0:1',
        'IP Address:0:0:0:0:0:FFFF:A01:203',
      ].join(', '),
    );
    expect(server.checkHost('other.example')).toBeUndefined();
  });

  it('are valid from now, for as long as was asked', () => {
    const days = (Date.parse(server.validTo) - Date.now()) / 86_400_000;
    expect(days).toBeGreaterThan(29.9);
    expect(days).toBeLessThanOrEqual(30);
    expect(Date.parse(server.validFrom)).toBeLessThanOrEqual(Date.now());
  });

  it('have keys of their own, and serial numbers of their own', () => {
    expect(server.checkPrivateKey(createPrivateKey(made.server.key))).toBe(true);
    expect(server.checkPrivateKey(createPrivateKey(made.client.key))).toBe(false);
    expect(new Set([ca, server, client].map((one) => one.serialNumber)).size).toBe(3);
    expect(client.subject).toBe('CN=ünïcode and all');
    expect(client.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
    expect(server.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
  });

  it('carry mutual TLS', async () => {
    const listener = createServer({
      ca: made.ca,
      ...made.server,
      requestCert: true,
      rejectUnauthorized: true,
    });
    const seen = new Promise<TLSSocket>((resolve) => listener.once('secureConnection', resolve));
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    const { port } = listener.address() as { port: number };
    const socket = connect({ host: '127.0.0.1', port, ca: made.ca, ...made.client });
    await new Promise((resolve, reject) => {
      socket.once('secureConnect', resolve).once('error', reject);
    });
    expect((await seen).getPeerCertificate().subject.CN).toBe('ünïcode and all');
    socket.destroy();
    (await seen).destroy();
    await new Promise((resolve) => listener.close(resolve));
  });

  it('hold before a strict verifier that is not ours', () => {
    if (!onPath('openssl')) return skipAloud('there is no openssl here');
    const dir = mkdtempSync(join(tmpdir(), 'grantty-certs-'));
    try {
      writeFileSync(join(dir, 'ca.pem'), made.ca);
      for (const [purpose, { cert }] of [
        ['sslserver', made.server],
        ['sslclient', made.client],
      ] as const) {
        const options = ['verify', '-x509_strict', '-purpose', purpose, '-CAfile', 'ca.pem'];
        const { stdout } = spawnSync('openssl', options, {
          cwd: dir,
          input: cert,
          encoding: 'utf8',
        });
        expect(stdout).toBe('stdin: OK\n');
      }
    } finally {
      rmSync(dir, { recursive: true });
    }
  });
});
