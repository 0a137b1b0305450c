/** A grant as the trail has it, read again. */
import { type Grant, parseGrants } from '../core/grant.js';

/** Of a token of any depth: a delegated grant names those above it. @throws FIELD_INVALID when it is unsound */
export function grantOnRecord(written: unknown): Grant | undefined {
  const from = typeof written === 'object' && written !== null && 'from' in written && written.from;
  return parseGrants([written], Array.isArray(from) ? from.length : 0)[0];
}
