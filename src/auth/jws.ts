/** The compact form of a token (RFC 7515, 7.1), taken apart and checked before any key is looked at. */
import { CompactSign, type CryptoKey } from 'jose';
import { fieldInvalid } from '../core/errors.js';
import { asObject, asText, type JsonObject } from '../core/jsonShape.js';
import { parseStrictJson } from '../core/strictJson.js';
import { MAX_KID_LENGTH, type TokenAlgorithm, tokenAlgorithms } from './jwk.js';

/** Unit: bytes. Checked before anything of the token is parsed. */
export const MAX_TOKEN_BYTES = 8 * 1024;

/** `typ` of access tokens (RFC 9068, 2.1). */
export const TOKEN_TYPE = 'at+jwt';

/** Nothing of it may be believed yet: its signature has not been checked. */
export interface UnverifiedToken {
  readonly algorithm: TokenAlgorithm;
  readonly kid: string;
  readonly payload: JsonObject;
}

export interface SigningKey {
  readonly alg: TokenAlgorithm;
  readonly kid: string;
  readonly key: CryptoKey;
}

/** @throws FIELD_INVALID when it would be too long to be read again */
export async function signCompact(payload: object, { alg, kid, key }: SigningKey): Promise<string> {
  const token = await new CompactSign(Buffer.from(JSON.stringify(payload)))
    .setProtectedHeader({ alg, typ: TOKEN_TYPE, kid })
    .sign(key);
  if (token.length <= MAX_TOKEN_BYTES) return token;
  throw fieldInvalid('grants', `make a token of over ${MAX_TOKEN_BYTES} bytes`);
}

/** Base64url characters only: no padding, no white space (RFC 7515, 2). */
const BASE64URL = /^[A-Za-z0-9_-]+$/;

/** A malformed sequence throws; a byte order mark stays, so that the JSON parser refuses it. */
const UTF8_AS_IT_IS = { fatal: true, ignoreBOM: true };

/**
 * @throws FIELD_INVALID that says what is wrong and quotes nothing
 */
export function parseCompactJws(token: string): UnverifiedToken {
  if (token.length > MAX_TOKEN_BYTES) {
    throw fieldInvalid('token', `exceeds ${MAX_TOKEN_BYTES} bytes`);
  }
  const [header, payload, signature, ...rest] = token.split('.');
  if (header === undefined || payload === undefined || signature === undefined || rest.length > 0) {
    throw fieldInvalid('token', 'must have three parts');
  }
  decodePart('signature', signature);
  return {
    ...parseHeader(parseJsonPart('header', header)),
    payload: parseJsonPart('payload', payload),
  };
}

function parseHeader(header: JsonObject): { algorithm: TokenAlgorithm; kid: string } {
  const members = Object.keys(header);
  if (members.length !== 3 || !['alg', 'typ', 'kid'].every((name) => members.includes(name))) {
    throw fieldInvalid('header', 'must hold alg, typ and kid and nothing else');
  }
  if (header.typ !== TOKEN_TYPE) throw fieldInvalid('header.typ', `must be ${TOKEN_TYPE}`);
  const algorithm = tokenAlgorithms.find((name) => name === header.alg);
  if (algorithm === undefined) {
    throw fieldInvalid('header.alg', `must be one of ${tokenAlgorithms.join(', ')}`);
  }
  return { algorithm, kid: asText('header.kid', header.kid, MAX_KID_LENGTH) };
}

function parseJsonPart(field: string, part: string): JsonObject {
  const bytes = decodePart(field, part);
  let value: unknown;
  try {
    value = parseStrictJson(new TextDecoder('utf-8', UTF8_AS_IT_IS).decode(bytes));
  } catch {
    throw fieldInvalid(field, 'must be JSON in UTF-8 in which no object has a member twice');
  }
  return asObject(field, value);
}

/** One text for one sequence of bytes: bits that base64url leaves over must be zero (RFC 4648, 3.5). */
function decodePart(field: string, part: string): Buffer {
  const bytes = Buffer.from(part, 'base64url');
  if (BASE64URL.test(part) && bytes.toString('base64url') === part) return bytes;
  throw fieldInvalid(field, 'must be base64url without padding');
}
