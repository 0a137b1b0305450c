/** A supervisor answered and did not take the connection: trying again changes nothing. */
import { GranttyError } from '../../core/errors.js';

export class SupervisorRefusal extends GranttyError {
  constructor(refused: GranttyError) {
    super(refused.reason, refused.message, {
      metadata: refused.metadata,
      violations: refused.violations,
      ...(refused.retryAfterMs !== undefined && { retryAfterMs: refused.retryAfterMs }),
      cause: refused,
    });
  }
}
