// Makes a development authority, a server and a client certificate: node certs-dev/make.mjs [HOST...]
// Needs the build (dist). Writes to certs-dev/out, which is not committed.
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeDevelopmentCertificates } from '../dist/app/certificates.js';

const LOOPBACK = ['localhost', '127.0.0.1', '::1'];
const DAYS = 90;

const out = join(import.meta.dirname, 'out');
const hosts = [...new Set([...LOOPBACK, ...process.argv.slice(2)])];
const { ca, server, client } = makeDevelopmentCertificates({
  hosts,
  clientName: 'grantty development client',
  days: DAYS,
});

mkdirSync(out, { recursive: true, mode: 0o700 });
chmodSync(out, 0o700);
const files = {
  'ca.pem': ca,
  'server.pem': server.cert,
  'server.key': server.key,
  'client.pem': client.cert,
  'client.key': client.key,
};
for (const [name, pem] of Object.entries(files)) {
  writeFileSync(join(out, name), pem, { mode: 0o600 });
}
process.stdout.write(`${Object.keys(files).join(', ')} in ${out}, for ${hosts.join(', ')}\n`);
