/** What all commands share: from a handler to an exit code, and from an error to words. */
import { errorCode, type GranttyError } from '../core/errors.js';
import { ExitCode, exitCodeOf, UsageError } from './exitCode.js';
import { flagOfField, inFlags } from './flagNames.js';
import { note, OutputClosed } from './output.js';

/** Makes a handler that gives the exit code into commander's action. */
export function action<Args extends unknown[]>(
  handler: (...args: Args) => Promise<number | undefined>,
): (...args: Args) => Promise<void> {
  return async (...args) => {
    process.exitCode = (await handler(...args)) ?? ExitCode.OK;
  };
}

/** As `action`, for commands that exit with a process's code: their own failures are 255. */
export function processAction<Args extends unknown[]>(
  handler: (...args: Args) => Promise<number>,
): (...args: Args) => Promise<void> {
  return async (...args) => {
    try {
      process.exitCode = await handler(...args);
    } catch (error) {
      if (error instanceof UsageError) throw error;
      reportFailure(error);
      process.exitCode = ExitCode.OWN_FAILURE;
    }
  };
}

/** Tells the error and gives its exit code. */
export function reportFailure(error: unknown): number {
  if (error instanceof OutputClosed) return ExitCode.OK;
  note(describeFailure(error));
  const hint = hintFor(error);
  if (hint !== undefined) note(hint);
  return exitCodeOf(error);
}

export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const reason = 'reason' in error && typeof error.reason === 'string' ? error.reason : undefined;
  const label = reason ?? (error.name === 'StatusError' ? errorCode(error) : undefined);
  const message = isViolating(error) ? inFlags(error, flagOfField) : error.message;
  return label === undefined ? message : `${label}: ${message}`;
}

/** What to do about it, where that is not in the message. */
export function hintFor(error: unknown): string | undefined {
  const metadata = metadataOf(error);
  const decision = metadata.decision_id;
  switch (reasonOf(error)) {
    case 'TOKEN_EXPIRED':
      return 'get a new token; with --token-file or --token-command it is read again by itself';
    case 'TOKEN_MISSING':
    case 'TOKEN_INVALID':
      return 'see what the token says with "ctx grant inspect"';
    case 'GRANT_MISSING': {
      const action = metadata.required_action;
      const needed = action
        ? `the token needs a grant of ${action} that covers this terminal`
        : undefined;
      return [needed, decision && `decision ${decision}`].filter(Boolean).join('; ') || undefined;
    }
    case 'POLICY_DENIED':
    case 'GRANT_REVOKED':
      return decision && `ask the operator about decision ${decision}`;
    case 'SUPERVISOR_UNAVAILABLE':
    case 'KEYS_UNAVAILABLE':
    case 'AUDIT_UNAVAILABLE':
    case 'SERVER_DRAINING':
      return "try again; if that does not help, the server's log says why";
    default:
      return errorCode(error) === 'UNAVAILABLE'
        ? 'is the server running, and are --address and --ca right?'
        : undefined;
  }
}

function isViolating(error: Error): error is Error & Pick<GranttyError, 'violations'> {
  return 'violations' in error && Array.isArray(error.violations);
}

function reasonOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'reason' in error
    ? error.reason
    : undefined;
}

function metadataOf(error: unknown): Readonly<Record<string, string>> {
  if (typeof error !== 'object' || error === null || !('metadata' in error)) return {};
  return typeof error.metadata === 'object' && error.metadata !== null
    ? (error.metadata as Record<string, string>)
    : {};
}
