/** The keys of the token vectors: fixed, made from labels, and good for nothing else. */
import { createHash, createPrivateKey, type KeyObject, sign } from 'node:crypto';

/** DER of a PKCS #8 Ed25519 private key, up to its 32 bytes of seed (RFC 8410, 7). */
const ED25519_PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');

export interface VectorKey {
  readonly privateKey: KeyObject;
  readonly publicJwk: { readonly kty: string; readonly crv: string; readonly x: string };
}

/** The Ed25519 key whose seed is the SHA-256 of the label. */
export function vectorKey(label: string): VectorKey {
  const seed = createHash('sha256').update(label).digest();
  const key = Buffer.concat([ED25519_PKCS8, seed]);
  const privateKey = createPrivateKey({ key, format: 'der', type: 'pkcs8' });
  const { kty, crv, x } = privateKey.export({ format: 'jwk' });
  return { privateKey, publicJwk: { kty: String(kty), crv: String(crv), x: String(x) } };
}

/** Ed25519 signatures depend on key and text alone (RFC 8032), so vectors come out the same each time. */
export function signEd25519({ privateKey }: VectorKey, text: string): string {
  return sign(null, Buffer.from(text), privateKey).toString('base64url');
}
