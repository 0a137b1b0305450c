/** Exit codes of the command line, and which one a failure leads to. */
import { errorCode, GranttyError } from '../core/errors.js';

export const ExitCode = {
  OK: 0,
  FAILURE: 1,
  USAGE: 2,
  /** EX_UNAVAILABLE of sysexits.h: the server cannot be reached or is not able to serve. */
  UNAVAILABLE: 69,
  /** EX_NOPERM of sysexits.h: no valid token, or one that does not allow it. */
  DENIED: 77,
  /** As timeout(1). */
  TIMED_OUT: 124,
  /** Failures of commands that else exit with their process's code, as ssh(1) does. */
  OWN_FAILURE: 255,
} as const;

/** The command line was wrong; `message` says what and what would be right. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError || isConfigurationError(error)) return ExitCode.USAGE;
  if (isLackOfSupervisor(error)) return ExitCode.UNAVAILABLE;
  switch (errorCode(error)) {
    case 'UNAVAILABLE':
      return ExitCode.UNAVAILABLE;
    case 'UNAUTHENTICATED':
    case 'PERMISSION_DENIED':
      return ExitCode.DENIED;
    case 'DEADLINE_EXCEEDED':
      return ExitCode.TIMED_OUT;
    default:
      return ExitCode.FAILURE;
  }
}

/** Of this process, on the host: it has no code of a call. */
function isLackOfSupervisor(error: unknown): boolean {
  return error instanceof GranttyError && error.reason === 'SUPERVISOR_UNAVAILABLE';
}

/** Known by its name: the class belongs to the server, which is not loaded for other commands. */
function isConfigurationError(error: unknown): boolean {
  return error instanceof Error && error.name === 'ConfigurationError';
}
