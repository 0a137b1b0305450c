/** Starts that are refused: what is said, in how many words, with which exit code, and what is left behind. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jest } from '@jest/globals';
import { makeDevelopmentCertificates } from '../../src/app/certificates.js';
import { generateIssuerKey } from '../../src/auth/mint.js';
import { CTX } from '../support/devServer.js';

/** Of starts of the program on a host that has much to do. */
jest.setTimeout(90_000);

const issuer = await generateIssuerKey();
const made = makeDevelopmentCertificates({ hosts: ['127.0.0.1'], clientName: 'c', days: 1 });

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'grantty-refused-'));
  await writeFile(join(dir, 'server.pem'), made.server.cert);
  await writeFile(join(dir, 'server.key'), made.server.key, { mode: 0o600 });
  await writeFile(join(dir, 'jwks.json'), JSON.stringify(issuer.jwks));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const configOf = (changes: Readonly<Record<string, string>> = {}) =>
  Object.entries({
    state_dir: 'state',
    listen: '127.0.0.1:0',
    audience: 'a',
    tls: '{cert: server.pem, key: server.key}',
    issuers: '[{issuer: i, jwks_file: jwks.json}]',
    run_as: '{mode: shared-uid}',
    ...changes,
  })
    .map(([key, value]) => `${key}: ${value}\n`)
    .join('');

interface Refusal {
  readonly code: number | null;
  readonly said: string;
}

/** Runs `ctx serve` until it ends by itself. */
async function refusal(config: string): Promise<Refusal> {
  const file = join(dir, 'config.yaml');
  await writeFile(file, config);
  const args = ['serve', '--config', file, '--supervisor', 'in-process'];
  const child = spawn(process.execPath, [CTX, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const [code] = await once(child, 'close');
  return { code, said };
}

const isThere = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

describe('ctx serve, refused', () => {
  it('for a certificate that is not there says key, path, reason and remedy in a line, and makes nothing', async () => {
    const { code, said } = await refusal(configOf({ tls: '{cert: no.pem, key: server.key}' }));
    expect({ code, said }).toEqual({
      code: 2,
      said: `ctx: ${dir}/config.yaml: tls.cert: ${dir}/no.pem cannot be read: it does not exist; put it there, or change tls.cert\n`,
    });
    expect(await isThere(join(dir, 'state'))).toBe(false);
  });

  it('for several mistakes tells them all, each with its key, and makes nothing', async () => {
    await mkdir(join(dir, 'policies'));
    await writeFile(join(dir, 'policies/a.cedar'), 'permit(principal, action, resource)');
    await writeFile(join(dir, 'none.json'), '{"keys":[]}');
    const { code, said } = await refusal(
      configOf({
        tls: '{cert: no.pem, key: no.key, client_ca: jwks.json}',
        issuers:
          '[{issuer: i, jwks_file: jwks.json}, {issuer: j, jwks_file: no.json}, {issuer: k, jwks_file: none.json}]',
        policy: 'policies',
        run_as: '{mode: fixed-user, uid: 2000}',
        pop: 'required',
      }),
    );
    const [first, ...lines] = said.trimEnd().split('\n');
    expect(first).toBe(`ctx: ${dir}/config.yaml is not valid:`);
    expect(lines.map((line) => /^ {2}(\S+): /.exec(line)?.[1])).toEqual([
      ...(process.getuid?.() === 0 ? [] : ['run_as.mode']),
      'tls.cert',
      'tls.key',
      'tls.client_ca',
      'issuers[1].jwks_file',
      'issuers[2].jwks_file',
      'policy',
    ]);
    expect(code).toBe(2);
    expect(await isThere(join(dir, 'state'))).toBe(false);
  });
});

describe('ctx serve with an issuer that cannot be reached', () => {
  it('serves all the same, and says which and why in a line without a stack', async () => {
    const file = join(dir, 'config.yaml');
    const gone = createServer().listen(0, '127.0.0.1');
    await once(gone, 'listening');
    const url = `http://127.0.0.1:${(gone.address() as AddressInfo).port}/keys`;
    await once(gone.close(), 'close');
    const issuers = `[{issuer: i, jwks_url: '${url}'}]`;
    await writeFile(file, configOf({ issuers }));
    const args = [CTX, 'serve', '--config', file, '--supervisor', 'in-process'];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    await new Promise<void>((resolve, reject) => {
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        said += text;
        if (said.includes('ctx: serving on')) resolve();
      });
      child.once('exit', () => reject(new Error(said)));
    });
    child.kill();
    expect((await once(child, 'exit'))[0]).toBe(0);
    const line = said.split('\n').find((one) => one.includes('keys not read yet')) ?? '{}';
    expect(JSON.parse(line).reason).toBe(
      `keys of issuer i in ${url}: cannot be fetched: nothing listens there`,
    );
    expect(line.length).toBeLessThan(400);
  });
});
