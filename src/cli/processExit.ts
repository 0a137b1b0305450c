/** How a terminal's process ended, as an exit code of ours. */
import type { ExitStatus } from '../gen/public/grantty/v1/terminal_pb.js';
import { ExitCode } from './exitCode.js';
import { note } from './output.js';

/** The process's own code; 128+n after a signal; where nobody knows it, a failure of ours. */
export function processExitCode(status: ExitStatus | undefined): number {
  if (status?.exitCode !== undefined) return status.exitCode;
  note('the exit code is not known: the supervisor was lost while the process ran');
  return ExitCode.OWN_FAILURE;
}
