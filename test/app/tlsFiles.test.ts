/** The files of TLS: what is taken, and what is said of those that are not. */
import { X509Certificate } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeDevelopmentCertificates } from '../../src/app/certificates.js';
import { readTls } from '../../src/app/tlsFiles.js';

const { ca, server, client } = makeDevelopmentCertificates({
  hosts: ['h'],
  clientName: 'c',
  days: 1,
});

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'grantty-tls-'));
});
afterEach(() => rm(dir, { recursive: true }));

async function read(files: {
  readonly cert: string | Buffer;
  readonly key: string;
  readonly ca?: string;
}) {
  for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), text);
  const withCa = files.ca === undefined ? {} : { client_ca: join(dir, 'ca') };
  return readTls({ tls: { cert: join(dir, 'cert'), key: join(dir, 'key'), ...withCa } });
}

describe('the files of tls', () => {
  it('are given as they are when they fit', async () => {
    expect(await read({ ...server, ca })).toEqual({
      cert: Buffer.from(server.cert),
      key: Buffer.from(server.key),
      clientCa: Buffer.from(ca),
    });
    expect(await read({ ...server, cert: server.cert + ca })).not.toHaveProperty('clientCa');
  });

  it.each([
    ['no certificate', { ...server, cert: 'x' }, 'tls.cert: DIR/cert holds no certificate'],
    ['a key for a certificate', { ...server, cert: server.key }, 'tls.cert: DIR/cert holds no'],
    [
      'a certificate in DER',
      { ...server, cert: new X509Certificate(server.cert).raw },
      'tls.cert: DIR/cert holds no certificate',
    ],
    ['no key', { ...server, key: 'x' }, 'tls.key: DIR/key holds no private key'],
    [
      'the key of another',
      { ...server, key: client.key },
      'tls.key: DIR/key is not the key of DIR',
    ],
    ['no authority', { ...server, ca: '' }, 'tls.client_ca: DIR/ca holds no certificate'],
  ])('are refused for %s, with the key and what to do', async (_, files, text) => {
    await expect(read(files)).rejects.toMatchObject({
      name: 'ConfigurationError',
      problems: [
        {
          text: expect.stringContaining(text.replaceAll('DIR', dir)),
          remedy: expect.stringContaining('give'),
        },
      ],
    });
  });

  it('are refused for all that is wrong at once, without a word of what they hold', async () => {
    const secret = server.key.split('\n')[1] ?? '';
    const error: Error = await read({ cert: server.key, key: `${secret}` }).catch((one) => one);
    expect(error.message).toMatch(/tls\.cert: .*\n.*tls\.key: /);
    expect(error.message).not.toContain(secret);
  });
});
