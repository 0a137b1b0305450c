/** The name that a token is bound to a client certificate by: `x5t#S256` of RFC 8705. */
import { readFile } from 'node:fs/promises';
import { UsageError } from './exitCode.js';

/** SHA-256 of the DER of the certificate in this PEM file, base64url. */
export async function certificateThumbprintOf(option: string, path: string): Promise<string> {
  const [{ createHash, X509Certificate }, pem] = await Promise.all([
    import('node:crypto'),
    readFile(path).catch((error: Error) => {
      throw new UsageError(`${option}: ${error.message}`);
    }),
  ]);
  try {
    return createHash('sha256').update(new X509Certificate(pem).raw).digest('base64url');
  } catch {
    throw new UsageError(`${option}: ${path} is not a certificate`);
  }
}
