/** The one error class of the product and its closed set of reasons. */

/**
 * Every machine-readable reason a caller can be given. The names are those of the proto's
 * `ErrorReason` without the prefix; a test keeps the two lists equal.
 */
export const errorReasons = [
  'TOKEN_MISSING',
  'TOKEN_INVALID',
  'TOKEN_EXPIRED',
  'POP_MISMATCH',
  'GRANT_MISSING',
  'GRANT_REVOKED',
  'POLICY_DENIED',
  'TERMINAL_NOT_FOUND',
  'FIELD_INVALID',
  'COMMAND_NOT_FOUND',
  'CWD_INVALID',
  'TERMINAL_EXISTS',
  'REQUEST_ID_REUSED',
  'TERMINAL_EXITED',
  'SEND_ACTIVE',
  'LOG_REWOUND',
  'QUOTA_TERMINALS',
  'QUOTA_STREAMS',
  'QUOTA_LOG_BYTES',
  'RATE_LIMITED',
  'INPUT_QUEUE_FULL',
  'SEQ_TRIMMED',
  'KEYS_UNAVAILABLE',
  'AUDIT_UNAVAILABLE',
  'SUPERVISOR_UNAVAILABLE',
  'SERVER_DRAINING',
] as const;

export type ErrorReason = (typeof errorReasons)[number];

/** One argument that is wrong: its proto field path and what is wrong with it. */
export interface FieldViolation {
  readonly field: string;
  readonly description: string;
}

export interface ErrorDetails {
  /** Facts for programs, e.g. `required_action`, `first_seq`. Never a secret: it goes on the wire. */
  readonly metadata?: Readonly<Record<string, string>>;
  readonly violations?: readonly FieldViolation[];
  /** Milliseconds after which the same request may succeed. */
  readonly retryAfterMs?: number;
  /** For the log only; never sent to a client. */
  readonly cause?: unknown;
}

/**
 * A failure with a reason that its caller may see. `message` is shown to the caller as it stands:
 * it says what was wrong and what to do, and holds no secret. Anything else that is thrown is a
 * defect and reaches the caller as INTERNAL with a fixed text.
 */
export class GranttyError extends Error {
  override readonly name = 'GranttyError';
  readonly metadata: Readonly<Record<string, string>>;
  readonly violations: readonly FieldViolation[];
  readonly retryAfterMs: number | undefined;

  constructor(
    readonly reason: ErrorReason,
    message: string,
    details: ErrorDetails = {},
  ) {
    super(message, { cause: details.cause });
    this.metadata = details.metadata ?? {};
    this.violations = details.violations ?? [];
    this.retryAfterMs = details.retryAfterMs;
  }
}

/** A FIELD_INVALID error about one field. */
export function fieldInvalid(field: string, description: string): GranttyError {
  return new GranttyError('FIELD_INVALID', `${field}: ${description}`, {
    violations: [{ field, description }],
  });
}

/** The `code` of a Node.js system error, else undefined. Works across realms, where instanceof does not. */
export function errorCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** What an error says, without its stack. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
