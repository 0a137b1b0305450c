/** How a terminal's process ended, as an exit code of ours and a word where somebody else ended it. */
import { ExitReason, type ExitStatus } from '../gen/public/grantty/v1/terminal_pb.js';
import { ExitCode } from './exitCode.js';
import { note } from './output.js';

/** The process's own code; 128+n after a signal; where nobody knows it, a failure of ours. */
export function processExitCode(status: ExitStatus | undefined): number {
  noteEnding(status);
  if (status?.exitCode !== undefined) return status.exitCode;
  note('the exit code is not known: the supervisor was lost while the process ran');
  return ExitCode.OWN_FAILURE;
}

/** A line where it was the supervisor that ended the process. */
export function noteEnding(status: ExitStatus | undefined): void {
  const why = status && endingText(status.reason);
  if (why !== undefined) note(`the supervisor ended the terminal: ${why}`);
}

function endingText(reason: ExitReason): string | undefined {
  switch (reason) {
    case ExitReason.SUPERVISOR_STOPPED:
      return 'it was told to end itself';
    case ExitReason.IDLE_LIMIT:
      return 'nobody had used it for as long as the server allows (idle limit)';
    case ExitReason.LIFETIME_LIMIT:
      return 'it had lived for as long as the server allows (lifetime limit)';
    default:
      return undefined;
  }
}
