/** How a stream ends: what its `closing` says and the status that goes with it. */
import { type ErrorReason, GranttyError } from '../core/errors.js';
import { ClosingReason } from '../gen/public/grantty/v1/stream_pb.js';

export interface Ending {
  readonly reason: ClosingReason;
  /** Absent: status OK. */
  readonly error?: GranttyError;
}

export const exited: Ending = { reason: ClosingReason.EXITED };
export const endOfHistory: Ending = { reason: ClosingReason.END_OF_HISTORY };

const closingReasons: Partial<Record<ErrorReason, ClosingReason>> = {
  TOKEN_EXPIRED: ClosingReason.TOKEN_EXPIRED,
  TOKEN_INVALID: ClosingReason.TOKEN_INVALID,
  POP_MISMATCH: ClosingReason.CERTIFICATE_EXPIRED,
  GRANT_MISSING: ClosingReason.GRANT_EXPIRED,
  GRANT_REVOKED: ClosingReason.GRANT_REVOKED,
  POLICY_DENIED: ClosingReason.POLICY_DENIED,
  TERMINAL_NOT_FOUND: ClosingReason.DELETED,
  SERVER_DRAINING: ClosingReason.SERVER_DRAINING,
  SUPERVISOR_UNAVAILABLE: ClosingReason.SUPERVISOR_UNAVAILABLE,
  KEYS_UNAVAILABLE: ClosingReason.KEYS_UNAVAILABLE,
  AUDIT_UNAVAILABLE: ClosingReason.AUDIT_UNAVAILABLE,
  SEQ_TRIMMED: ClosingReason.SEQ_TRIMMED,
  LOG_REWOUND: ClosingReason.LOG_REWOUND,
};

/** The ending that an error means; undefined where the contract has no `closing` for it. */
export function endingOf(error: unknown): Ending | undefined {
  if (!(error instanceof GranttyError)) return undefined;
  const reason = closingReasons[error.reason];
  return reason === undefined ? undefined : { reason, error };
}
