import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { connect as connectTls } from 'node:tls';
import { makeDevelopmentCertificates } from '../../src/app/certificates.js';
import { generateIssuerKey, mintToken } from '../../src/auth/mint.js';
import { type Client, connect } from '../../src/client/connect.js';
import { capabilities } from '../../src/core/capability.js';
import { GRANT_TYPE } from '../../src/core/grant.js';
import { CTX } from '../support/devServer.js';
import { owner } from '../support/registry.js';

const AUDIENCE = 'https://terminals.example';
const ISSUER = 'https://id.example';

const make = () =>
  makeDevelopmentCertificates({ hosts: ['127.0.0.1'], clientName: 'client', days: 1 });

describe('ctx serve with a configuration, told to read its files again', () => {
  let dir: string;
  let lines: AsyncIterator<string>;
  let server: ReturnType<typeof spawn>;
  let address: string;
  let client: Client;
  let ca: string;
  const said: string[] = [];

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'grantty-configured-'));
    const [issuer, certificates] = [await generateIssuerKey(), make()];
    ca = certificates.ca;
    await writeFile(join(dir, 'server.pem'), certificates.server.cert);
    await writeFile(join(dir, 'server.key'), certificates.server.key, { mode: 0o600 });
    await writeFile(join(dir, 'jwks.json'), JSON.stringify(issuer.jwks));
    await writeFile(
      join(dir, 'config.yaml'),
      `state_dir: state
listen: 127.0.0.1:0
audience: ${AUDIENCE}
tls: {cert: server.pem, key: server.key}
issuers: [{issuer: '${ISSUER}', jwks_file: jwks.json}]
run_as: {mode: shared-uid}
`,
    );
    const args = [CTX, 'serve', '--config', join(dir, 'config.yaml'), '--supervisor', 'in-process'];
    server = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    if (!server.stderr) throw new Error('the server has no standard error');
    lines = createInterface({ input: server.stderr })[Symbol.asyncIterator]();
    address = (await until(/serving on (\S+)/))[1] ?? '';
    const token = await mintToken({
      key: issuer.privateJwk,
      issuer: ISSUER,
      audience: AUDIENCE,
      subject: 'tester',
      ttl: 3600,
      now: Date.now(),
      grants: [
        {
          type: GRANT_TYPE,
          id: 'g1',
          actions: capabilities,
          resource: { owner, agent: '*', session: '*', terminal: '*' },
        },
      ],
    });
    client = connect({ address, ca, token: async () => token });
  });

  afterAll(async () => {
    client.close();
    if (server.exitCode === null) {
      server.kill('SIGTERM');
      await once(server, 'exit');
    }
    await rm(dir, { recursive: true, force: true });
  });

  /** The first line from now on that the server says and that matches. */
  async function until(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const { done, value } = await lines.next();
      if (done) throw new Error(`the server ended: ${said.join('\n')}`);
      said.push(value);
      const match = pattern.exec(value);
      if (match) return match;
    }
  }

  /** Fingerprint of the certificate that a new connection is shown. */
  async function shown(): Promise<string> {
    const socket = connectTls({
      host: '127.0.0.1',
      port: Number(address.split(':').at(-1)),
      ALPNProtocols: ['h2'],
      rejectUnauthorized: false,
    });
    await once(socket, 'secureConnect');
    const { fingerprint256 } = socket.getPeerCertificate();
    socket.destroy();
    return fingerprint256;
  }

  it('shows a renewed certificate to new connections, keeps the old ones, and keeps the old one when the new is unsound', async () => {
    const terminal = { id: 'kept' };
    await client.terminals.createTerminal({ agent: 'a', ...terminal, command: ['cat'] });
    const before = await shown();

    const renewed = make();
    await writeFile(join(dir, 'server.pem'), renewed.server.cert);
    await writeFile(join(dir, 'server.key'), renewed.server.key);
    server.kill('SIGHUP');
    await until(/reload|read again/);
    const after = await shown();
    expect(after).not.toBe(before);

    await writeFile(join(dir, 'server.pem'), 'no certificate');
    server.kill('SIGHUP');
    await until(/stays/);
    expect(await shown()).toBe(after);

    await writeFile(join(dir, 'jwks.json'), 'no keys');
    server.kill('SIGHUP');
    await until(/stays/);
    const { terminal: found } = await client.terminals.getTerminal({ terminal });
    expect(found?.ref?.id).toBe('kept');
    expect(await readFile(join(dir, 'server.pem'), 'utf8')).toBe('no certificate');
  });
});
