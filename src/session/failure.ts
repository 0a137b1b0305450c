/** Errors over a message port and back: their class does not survive it. */
import { GranttyError } from '../core/errors.js';
import type { Failure } from './screenProtocol.js';

export function errorFailure(error: unknown): Failure {
  if (error instanceof GranttyError) {
    return { reason: error.reason, message: error.message, violations: error.violations };
  }
  return { message: String(error) };
}

export function failureError({ reason, message, violations = [] }: Failure): Error {
  return reason ? new GranttyError(reason, message, { violations }) : new Error(message);
}
