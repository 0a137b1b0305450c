/** One public key of an issuer, read from a JWK (RFC 7517), and the algorithms it may be used with. */
import { type CryptoKey, importJWK, type JWK } from 'jose';
import { fieldInvalid } from '../core/errors.js';
import { asObject, asText, type JsonObject } from '../core/jsonShape.js';

/** Algorithms of tokens. `EdDSA` (RFC 8037) and `Ed25519` (RFC 9864) name the same one. */
export const tokenAlgorithms = ['EdDSA', 'Ed25519', 'ES256', 'RS256'] as const;
export type TokenAlgorithm = (typeof tokenAlgorithms)[number];

export interface VerificationKey {
  readonly kid: string;
  /** What a token signed by this key may give as `alg`. */
  readonly algorithms: readonly TokenAlgorithm[];
  readonly key: CryptoKey;
  /** The JWK as it was written: another text under the same kid is another key. */
  readonly written: string;
}

export const MAX_KID_LENGTH = 256;

/** Unit: bits; RFC 7518, 3.3. */
const MIN_RSA_BITS = 2048;

/** Members that only a private key (RFC 7518, 6.2.2 and 6.3.2; RFC 8037, 2) or a symmetric one has. */
const SECRET_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

/**
 * Undefined for a key that is not for verifying tokens: another use, kind or algorithm (RFC 7517, 5).
 * @throws FIELD_INVALID for a private or symmetric key, one without kid, and one that is unsound
 */
export async function parseJwk(
  field: string,
  value: unknown,
): Promise<VerificationKey | undefined> {
  const jwk = asObject(field, value);
  if (jwk.kty === 'oct' || SECRET_MEMBERS.some((member) => Object.hasOwn(jwk, member))) {
    throw fieldInvalid(field, 'is a private or symmetric key; only public keys belong here');
  }
  const algorithms = algorithmsOf(jwk);
  const [algorithm] = algorithms;
  if (algorithm === undefined || !isForVerifying(jwk)) return undefined;
  const kid = asText(`${field}.kid`, jwk.kid, MAX_KID_LENGTH);
  const key = await importKey(field, jwk, algorithm);
  return { kid, algorithms, key, written: JSON.stringify(jwk) };
}

/** The algorithms that kty and crv allow, or of these the one that the key's own `alg` names. */
export function algorithmsOf(jwk: JsonObject): readonly TokenAlgorithm[] {
  const allowed = algorithmsOfKind(jwk);
  return jwk.alg === undefined ? allowed : allowed.filter((algorithm) => algorithm === jwk.alg);
}

function algorithmsOfKind({ kty, crv }: JsonObject): readonly TokenAlgorithm[] {
  if (kty === 'OKP' && crv === 'Ed25519') return ['EdDSA', 'Ed25519'];
  if (kty === 'EC' && crv === 'P-256') return ['ES256'];
  if (kty === 'RSA') return ['RS256'];
  return [];
}

function isForVerifying({ use, key_ops: operations }: JsonObject): boolean {
  if (use !== undefined && use !== 'sig') return false;
  return operations === undefined || (Array.isArray(operations) && operations.includes('verify'));
}

async function importKey(
  field: string,
  jwk: JsonObject,
  algorithm: TokenAlgorithm,
): Promise<CryptoKey> {
  const key = await importJWK(jwk as JWK, algorithm).catch(() => undefined);
  if (key === undefined || key instanceof Uint8Array)
    throw fieldInvalid(field, 'is not a sound key');
  const { modulusLength } = key.algorithm as { modulusLength?: number };
  if (modulusLength !== undefined && modulusLength < MIN_RSA_BITS) {
    throw fieldInvalid(field, `must have at least ${MIN_RSA_BITS} bits`);
  }
  return key;
}
