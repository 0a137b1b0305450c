/** Failures of the session service, whose codes callers branch on. */
import type { SurvivingProcess } from '../supervisor/api.js';
import type { Agent } from './agent.js';

export const terminalSessionErrorCodes = [
  'DUPLICATE_BACKEND',
  'DUPLICATE_NAME',
  'FOREIGN_SESSION',
  'NO_BACKEND',
  'NO_SESSION',
  'OWNER_NOT_LIVE',
  'SEND_ACTIVE',
  'SERVICE_DISPOSING',
] as const;

export type TerminalSessionErrorCode = (typeof terminalSessionErrorCodes)[number];

/**
 * A refusal by the service. The set of codes is the session interface's own and belongs to the
 * library; a host maps them to its own reasons.
 */
export class TerminalSessionError extends Error {
  override readonly name = 'TerminalSessionError';

  constructor(
    readonly code: TerminalSessionErrorCode,
    message: string,
  ) {
    super(message);
  }
}

/**
 * A backend could not clean up what it had started or was to close; `cause` says why. Kept apart
 * from the reason for which the clean-up was due, so that it replaces no caller's cancel reason.
 */
export class TerminalBackendCleanupError extends Error {
  override readonly name = 'TerminalBackendCleanupError';

  constructor(
    message: string,
    cause?: unknown,
    /** Processes that were found living. */
    readonly survivors: readonly SurvivingProcess[] = [],
  ) {
    super(message, { cause });
  }
}

export function noSession(id: string): TerminalSessionError {
  return new TerminalSessionError('NO_SESSION', `there is no session ${id}`);
}

export function ownerNotLive({ agent }: Agent): TerminalSessionError {
  return new TerminalSessionError('OWNER_NOT_LIVE', `agent ${agent} is being disposed`);
}

/** @throws AggregateError when there is any failure */
export function throwAll(failures: readonly unknown[], message: string): void {
  if (failures.length > 0) throw new AggregateError(failures, message);
}
