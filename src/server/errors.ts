/** Refusals that more than one file makes. */
import { GranttyError } from '../core/errors.js';

export function notFound(): GranttyError {
  return new GranttyError(
    'TERMINAL_NOT_FOUND',
    'there is no such terminal; ListTerminals (ctx terminal list) tells which there are',
  );
}
