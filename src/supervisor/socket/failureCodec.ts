/** Errors on their way across: a GranttyError whole, anything else as the supervisor's failure. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { errorReasons, GranttyError } from '../../core/errors.js';
import { hostFailure } from '../../core/hostFailure.js';
import { type Failure, FailureSchema } from '../../gen/internal/grantty/internal/v1/records_pb.js';
import { defined, word } from './arrival.js';
import type { SocketLog } from './protocol.js';
import { unavailable } from './protocol.js';

/**
 * What is no GranttyError goes to the log here, and a fixed text goes across: what the host lacks, or
 * that there is a defect.
 */
export function encodeFailure(error: unknown, log: SocketLog): Failure {
  if (!(error instanceof GranttyError)) {
    log.error({ err: error }, 'the supervisor failed');
    const lack = hostFailure(error) ?? 'the supervisor failed';
    return encodeFailure(unavailable(`${lack}; the log of the supervisor has more`), log);
  }
  const { reason, message, metadata, violations, retryAfterMs } = error;
  const init: MessageInitShape<typeof FailureSchema> = {
    reason,
    message,
    metadata,
    violations: [...violations],
    retryAfterMs,
  };
  return create(FailureSchema, init);
}

export function decodeFailure(failure: Failure): GranttyError {
  const { reason, message, metadata, violations, retryAfterMs } = failure;
  return new GranttyError(
    word(errorReasons, reason),
    message,
    defined({
      metadata,
      violations: violations.map(({ field, description }) => ({ field, description })),
      retryAfterMs,
    }),
  );
}
