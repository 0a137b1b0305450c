/**
 * The claims of a token: the RFC 9068 profile with grants as `authorization_details` (RFC 9396).
 *
 * Claims that are not listed here are ignored, as RFC 7519, 4 asks of readers and RFC 9068, 2.2
 * needs: issuers add their own, and none of them gives any authority. All that does stands in
 * `authorization_details`, where what is unknown refuses the token; so does an unknown way of
 * binding the token to a key, since to pass it over would make a bearer token of it.
 */
import { fieldInvalid } from '../core/errors.js';
import { type Grant, parseGrants, writeGrants } from '../core/grant.js';
import {
  asArray,
  asInteger,
  asObject,
  asObjectOf,
  asText,
  type JsonObject,
} from '../core/jsonShape.js';
import { MAX_KID_LENGTH } from './jwk.js';

/** Seconds from `iat` to `exp`. */
export const MAX_LIFETIME_SECONDS = 3600;

/** Characters of each of iss, sub, client_id, aud and jti. */
const MAX_TEXT_LENGTH = 512;

/** Actors of one delegated token, and tokens it descends from. */
export const MAX_DEPTH = 16;

export interface Claims {
  readonly issuer: string;
  readonly subject: string;
  readonly clientId: string;
  readonly audience: string;
  readonly jti: string;
  /** Times are seconds since the Unix epoch. */
  readonly issuedAt: number;
  readonly notBefore: number;
  readonly expiresAt: number;
  /** Who acts for the subject, the latest first (RFC 8693, 4.1); empty unless delegated. */
  readonly actors: readonly string[];
  /** The tokens that it descends from, the root first; empty unless delegated. */
  readonly lineage: readonly Ancestor[];
  /** Tokens that a line may have above its last one; absent unless delegated. */
  readonly maxDepth?: number;
  readonly cnf?: Confirmation;
  readonly grants: readonly Grant[];
}

/** A token further up, with what a revocation may go by. Its subject is that of the whole line. */
export interface Ancestor {
  readonly issuer: string;
  readonly jti: string;
  readonly keyId: string;
  /** Seconds since the Unix epoch. */
  readonly issuedAt: number;
}

/** The token is good only over a connection with this client certificate (RFC 8705, 3.1). */
export interface Confirmation {
  /** SHA-256 of the certificate's DER, base64url. */
  readonly x5tS256: string;
}

/**
 * Checks types, presence and lifetime; the time of day is the caller's to check. `mayDelegate` is
 * whether the issuer's word on actors and lineage counts.
 * @throws FIELD_INVALID that says what is wrong and quotes nothing
 */
export function parseClaims(payload: JsonObject, mayDelegate: boolean): Claims {
  const text = (name: string) => asText(name, payload[name], MAX_TEXT_LENGTH);
  const seconds = (name: string) => asInteger(name, payload[name], 0);
  if (!mayDelegate && DELEGATION.some((name) => Object.hasOwn(payload, name))) {
    throw fieldInvalid('token', 'has claims of delegation that its issuer may not make');
  }
  const lineage = parseLineage(payload.lineage);
  const claims: Claims = {
    issuer: text('iss'),
    subject: text('sub'),
    clientId: text('client_id'),
    audience: text('aud'),
    jti: text('jti'),
    issuedAt: seconds('iat'),
    notBefore: seconds('nbf'),
    expiresAt: seconds('exp'),
    actors: parseActors(payload.act),
    lineage,
    ...(lineage.length > 0 && { maxDepth: asInteger('max_depth', payload.max_depth, 0) }),
    ...(Object.hasOwn(payload, 'cnf') && { cnf: parseConfirmation(payload.cnf) }),
    grants: parseGrants(payload.authorization_details, lineage.length),
  };
  checkDelegation(claims);
  if (claims.expiresAt <= claims.issuedAt) throw fieldInvalid('exp', 'must be later than iat');
  if (claims.expiresAt - claims.issuedAt > MAX_LIFETIME_SECONDS) {
    throw fieldInvalid('exp', `must be at most ${MAX_LIFETIME_SECONDS} seconds after iat`);
  }
  return claims;
}

/** Claims that only the issuer may make who keeps the registry of what was delegated. */
const DELEGATION = ['act', 'lineage', 'max_depth'];

/** One actor for each step from the root, and no more steps than any token on the way allowed. */
function checkDelegation({ actors, lineage, maxDepth = 0 }: Claims): void {
  if (actors.length !== lineage.length) {
    throw fieldInvalid('act', 'must name an actor for each token of lineage');
  }
  if (lineage.length > maxDepth) throw fieldInvalid('max_depth', 'is less than the depth');
}

function parseActors(act: unknown): readonly string[] {
  const actors: string[] = [];
  for (let field = 'act', value = act; value !== undefined; field += '.act') {
    const actor = asObject(field, value);
    actors.push(asText(`${field}.sub`, actor.sub, MAX_TEXT_LENGTH));
    if (actors.length > MAX_DEPTH) throw fieldInvalid('act', `names over ${MAX_DEPTH} actors`);
    value = actor.act;
  }
  return actors;
}

function parseLineage(value: unknown): readonly Ancestor[] {
  if (value === undefined) return [];
  const written = asArray('lineage', value);
  if (written.length > MAX_DEPTH) throw fieldInvalid('lineage', `names over ${MAX_DEPTH} tokens`);
  return written.map((item, index) => {
    const field = `lineage[${index}]`;
    const { iss, jti, kid, iat } = asObjectOf(field, item, ['iss', 'jti', 'kid', 'iat']);
    return {
      issuer: asText(`${field}.iss`, iss, MAX_TEXT_LENGTH),
      jti: asText(`${field}.jti`, jti, MAX_TEXT_LENGTH),
      keyId: asText(`${field}.kid`, kid, MAX_KID_LENGTH),
      issuedAt: asInteger(`${field}.iat`, iat, 0),
    };
  });
}

/** The claims as a token has them; parsing that gives the same. */
export function writeClaims(claims: Claims): JsonObject {
  const { actors, lineage, maxDepth, cnf } = claims;
  return {
    iss: claims.issuer,
    sub: claims.subject,
    client_id: claims.clientId,
    aud: claims.audience,
    iat: claims.issuedAt,
    nbf: claims.notBefore,
    exp: claims.expiresAt,
    jti: claims.jti,
    ...(actors.length > 0 && { act: writeActors(actors) }),
    ...(lineage.length > 0 && { lineage: lineage.map(writeAncestor), max_depth: maxDepth }),
    ...(cnf && { cnf: { 'x5t#S256': cnf.x5tS256 } }),
    authorization_details: writeGrants(claims.grants),
  };
}

function writeActors(actors: readonly string[]): JsonObject | undefined {
  const [latest, ...earlier] = actors;
  if (latest === undefined) return undefined;
  return { sub: latest, ...(earlier.length > 0 && { act: writeActors(earlier) }) };
}

function writeAncestor({ issuer, jti, keyId, issuedAt }: Ancestor): JsonObject {
  return { iss: issuer, jti, kid: keyId, iat: issuedAt };
}

/** 32 bytes in base64url: 43 characters, of which the last leaves two bits over, that are zero. */
const SHA256_BASE64URL = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

export function parseConfirmation(value: unknown): Confirmation {
  const thumbprint = asObjectOf('cnf', value, ['x5t#S256'])['x5t#S256'];
  if (typeof thumbprint === 'string' && SHA256_BASE64URL.test(thumbprint)) {
    return { x5tS256: thumbprint };
  }
  throw fieldInvalid('cnf.x5t#S256', 'must be the SHA-256 of a certificate in base64url');
}
