/** A JWK set (RFC 7517) as text, and the keys of it that verify tokens. */
import { fieldInvalid, GranttyError } from '../core/errors.js';
import { asArray, asObject } from '../core/jsonShape.js';
import { parseStrictJson } from '../core/strictJson.js';
import { parseJwk, type VerificationKey } from './jwk.js';

/**
 * The keys of a JWK set that verify tokens, by kid. Keys of other kinds and uses are passed over.
 * @throws FIELD_INVALID
 */
export async function parseJwks(text: string): Promise<ReadonlyMap<string, VerificationKey>> {
  const written = asArray('keys', asObject('the set', parseJson(text)).keys);
  const keys = new Map<string, VerificationKey>();
  for (const [index, value] of written.entries()) {
    const key = await parseJwk(`keys[${index}]`, value);
    if (key === undefined) continue;
    if (keys.has(key.kid)) throw fieldInvalid(`keys[${index}].kid`, 'is that of another key too');
    keys.set(key.kid, key);
  }
  if (keys.size === 0) throw fieldInvalid('keys', 'holds no key that could verify a token');
  return keys;
}

function parseJson(text: string): unknown {
  try {
    return parseStrictJson(text);
  } catch (cause) {
    throw new GranttyError('FIELD_INVALID', 'is not sound JSON', { cause });
  }
}
