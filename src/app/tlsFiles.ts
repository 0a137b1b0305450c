/** The files under `tls`: read, and found to be what TLS takes before anything is done with them. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { TlsMaterial } from '../server/credentials.js';
import type { Configuration } from './config.js';
import { ProblemList, problemOf } from './configurationError.js';
import { readNamed } from './configuredFile.js';

/** @throws ConfigurationError that says of each key what is wrong with its file */
export async function readTls({ tls }: Pick<Configuration, 'tls'>): Promise<TlsMaterial> {
  const problems = new ProblemList();
  const cert = await problems.of(() => readCertificate('tls.cert', tls.cert));
  const key = await problems.of(() => readKey('tls.key', tls.key));
  const { client_ca: caFile } = tls;
  const clientCa =
    caFile === undefined
      ? undefined
      : await problems.of(() => readCertificate('tls.client_ca', caFile));
  if (cert && key && !cert.parsed.checkPrivateKey(key.parsed)) {
    const what = `${tls.key} is not the key of ${tls.cert}`;
    problems.add(problemOf('tls.key', what, 'give the pair that was issued'));
  }
  problems.throwIfAny('the files of tls');
  if (!cert || !key) throw new TypeError('what is missing is a problem');
  return { cert: cert.pem, key: key.pem, ...(clientCa && { clientCa: clientCa.pem }) };
}

/** What a certificate in PEM begins with. In DER, which TLS does not take, it would be parsed too. */
const PEM_MARK = '-----BEGIN ';

/** Of a chain, the first one is looked at. */
async function readCertificate(name: string, path: string) {
  const pem = await readNamed(name, path);
  try {
    if (!pem.includes(PEM_MARK)) throw new TypeError('no PEM');
    return { pem, parsed: new X509Certificate(pem) };
  } catch {
    throw problemOf(name, `${path} holds no certificate`, 'give one in PEM');
  }
}

async function readKey(name: string, path: string) {
  const pem = await readNamed(name, path);
  try {
    return { pem, parsed: createPrivateKey(pem) };
  } catch {
    const remedy = 'give one in PEM, without a passphrase';
    throw problemOf(name, `${path} holds no private key that can be read`, remedy);
  }
}
