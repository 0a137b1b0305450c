/** What stop and kill tell: whether the process tree is gone, and what of it is not. */
import type { ProcessInfo } from '../gen/public/grantty/v1/terminal_pb.js';
import { ExitCode } from './exitCode.js';
import { note } from './output.js';

export interface Ending {
  readonly survivors: readonly ProcessInfo[];
  readonly quiescent: boolean;
}

/** The exit code: a failure while something lives, so that scripts need not parse. */
export function reportEnding({ survivors, quiescent }: Ending, advice: string): number {
  if (quiescent) return ExitCode.OK;
  const list = survivors.map(({ pid, command }) => `${pid} (${command || '?'})`).join(', ');
  note(`processes still live: ${list || 'some that could not be listed'}; ${advice}`);
  return ExitCode.FAILURE;
}
