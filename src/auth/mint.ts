/** Makes issuer keys and signs tokens, as an issuer does: for the command line, demos and tests. */
import { randomUUID } from 'node:crypto';
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose';
import { fieldInvalid } from '../core/errors.js';
import { asText } from '../core/jsonShape.js';
import { MAX_LIFETIME_SECONDS, parseClaims } from './claims.js';
import { algorithmsOf, MAX_KID_LENGTH } from './jwk.js';
import { signCompact } from './jws.js';

export interface IssuerKey {
  /** The signing key. Secret. */
  readonly privateJwk: JWK;
  /** The set to give to servers: the public half alone. */
  readonly jwks: { readonly keys: readonly JWK[] };
}

export interface MintOptions {
  /** A private JWK. */
  readonly key: JWK;
  /** Absent: the key's own. */
  readonly kid?: string;
  readonly issuer: string;
  readonly audience: string;
  readonly subject: string;
  /** Absent: the subject. */
  readonly clientId?: string;
  /** Seconds, 1 to 3600. */
  readonly ttl: number;
  /** `authorization_details` as it goes into the token; checked first. */
  readonly grants: readonly unknown[];
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  /** Absent: random. */
  readonly jti?: string;
  /** Binds the token to a client certificate; see `certificateThumbprint`. */
  readonly x5tS256?: string;
}

/** A new Ed25519 key; its kid is its thumbprint (RFC 7638). */
export async function generateIssuerKey(): Promise<IssuerKey> {
  const { privateKey } = await generateKeyPair('EdDSA', { extractable: true });
  const jwk = await exportJWK(privateKey);
  const kid = await calculateJwkThumbprint(jwk);
  const privateJwk: JWK = { ...jwk, kid, alg: 'EdDSA', use: 'sig' };
  return { privateJwk, jwks: publicJwks(privateJwk) };
}

/** The set of the public half of a private key. */
export function publicJwks({ kty, crv, x, y, n, e, kid, alg, use }: JWK): IssuerKey['jwks'] {
  return { keys: [JSON.parse(JSON.stringify({ kty, crv, x, y, n, e, kid, alg, use }))] };
}

/** @throws FIELD_INVALID when a verifier would refuse the token */
export async function mintToken(options: MintOptions): Promise<string> {
  const { key, ttl } = options;
  if (!Number.isInteger(ttl) || ttl < 1 || ttl > MAX_LIFETIME_SECONDS) {
    throw fieldInvalid('ttl', `must be 1 to ${MAX_LIFETIME_SECONDS} seconds`);
  }
  const [alg] = algorithmsOf({ ...key });
  const kid = asText('kid', options.kid ?? key.kid, MAX_KID_LENGTH);
  if (alg === undefined || key.d === undefined) {
    throw fieldInvalid('key', 'must be a private JWK for EdDSA, ES256 or RS256');
  }
  const payload = claimsOf(options);
  parseClaims(payload, false);
  const signingKey = await importJWK(key, alg);
  if (signingKey instanceof Uint8Array) throw fieldInvalid('key', 'must not be symmetric');
  return signCompact(payload, { alg, kid, key: signingKey });
}

function claimsOf(options: MintOptions): Readonly<Record<string, unknown>> {
  const iat = Math.floor(options.now / 1000);
  return {
    iss: options.issuer,
    sub: options.subject,
    client_id: options.clientId ?? options.subject,
    aud: options.audience,
    iat,
    nbf: iat,
    exp: iat + options.ttl,
    jti: options.jti ?? randomUUID(),
    ...(options.x5tS256 !== undefined && { cnf: { 'x5t#S256': options.x5tS256 } }),
    authorization_details: options.grants,
  };
}
