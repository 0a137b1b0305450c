/** Numbers that both ends of the supervisor's socket agree on, and what they refuse by them. */
import { GranttyError } from '../../core/errors.js';

/** Raised with every change of proto-internal: only ends of the same version talk to each other. */
export const PROTOCOL_VERSION = 3;

/** Bytes of one message without its size; above it the connection is ended. Four full frames fit. */
export const MAX_MESSAGE_BYTES = 1024 * 1024;

/** Milliseconds in which a connection must have said, or been told, what it is. */
export const HANDSHAKE_MS = 5_000;

/**
 * Requests of one control connection that are unanswered at once, waits for an exit included; above
 * it a request is refused. Under 1 KiB each.
 */
export const MAX_PENDING_REQUESTS = 16_384;

/**
 * Bytes of requests that the kernel has not taken: above it a request is refused. Holds some hundred
 * full writes; as many only wait where the supervisor is stuck.
 */
export const MAX_WAITING_BYTES = 16 * 1024 * 1024;

/**
 * Milliseconds without a word from a supervisor, which is asked for one all the while, after which it
 * counts as lost. Above any pause of a busy host, and below what callers without a deadline put up with.
 */
export const SILENCE_MS = 10_000;

/** The part of a logger that is used here; pino's logger is one. */
export interface SocketLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export function unavailable(message: string, cause?: unknown): GranttyError {
  return new GranttyError('SUPERVISOR_UNAVAILABLE', message, { cause });
}

/** What the other end sent cannot be meant: it is another program, or another version of this one. */
export function unsound(what: string): GranttyError {
  return unavailable(
    `${what} on the supervisor's socket; server and supervisor must be of one version`,
  );
}
