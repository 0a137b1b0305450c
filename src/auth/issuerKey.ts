/** The server's own issuer: its name, and the key that only delegated tokens are signed with. */
import { importJWK, type JWK } from 'jose';
import { errorCode } from '../core/errors.js';
import { readRegular, writeFileAtomic } from '../store/files.js';
import { signCompact } from './jws.js';
import { generateIssuerKey, publicJwks } from './mint.js';

const MAX_KEY_BYTES = 4096;

/** Signs in the name of one issuer. Ed25519: the same content has the same signature. */
export interface IssuerKeyHolder {
  readonly issuer: string;
  readonly keyId: string;
  /** The set to verify by: the public half alone. */
  readonly jwks: object;
  /** A token of this payload. */
  sign(payload: object): Promise<string>;
}

/**
 * Reads the key, or makes one where there is none or where `isRevoked` says so: tokens that the old
 * one has signed are not believed any more.
 * @throws Error when the file is unsound
 */
export async function openIssuerKey(
  path: string,
  issuer: string,
  isRevoked: (keyId: string) => boolean,
): Promise<IssuerKeyHolder> {
  const found = await readKey(path);
  const isUsable = found !== undefined && !isRevoked(found.kid);
  const jwk = isUsable ? found : await makeKey(path);
  const key = await importJWK(jwk, 'EdDSA');
  if (key instanceof Uint8Array) throw new Error(`${path} is not an Ed25519 key`);
  const { kid } = jwk;
  return {
    issuer,
    keyId: kid,
    jwks: publicJwks(jwk),
    sign: (payload) => signCompact(payload, { alg: 'EdDSA', kid, key }),
  };
}

type PrivateKey = JWK & { readonly kid: string };

async function readKey(path: string): Promise<PrivateKey | undefined> {
  let text: string;
  try {
    text = (await readRegular(path, MAX_KEY_BYTES)).toString('utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
  // The parser's own message would quote the text, and the text is a secret.
  const jwk = parseOrUndefined(text);
  if (jwk?.kty === 'OKP' && jwk.crv === 'Ed25519' && jwk.d && jwk.kid) {
    return { ...jwk, kid: jwk.kid };
  }
  throw new Error(`${path} is not a private Ed25519 key with a kid; move it away to get a new one`);
}

function parseOrUndefined(text: string): JWK | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function makeKey(path: string): Promise<PrivateKey> {
  const { privateJwk } = await generateIssuerKey();
  await writeFileAtomic(path, `${JSON.stringify(privateJwk)}\n`);
  return { ...privateJwk, kid: String(privateJwk.kid) };
}
