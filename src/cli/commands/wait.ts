/** `ctx terminal wait`: until a terminal's process has exited; exits with its code. */
import { Command } from 'commander';
import { errorCode } from '../../core/errors.js';
import { processAction, reportFailure } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { ExitCode } from '../exitCode.js';
import { processExitCode } from '../processExit.js';
import { parseCount, parseDuration } from '../values.js';

interface Flags extends ConnectionFlags {
  readonly afterSeq?: bigint;
  readonly timeout?: number;
  readonly json?: boolean;
}

export function waitCommand(): Command {
  return withConnectionFlags(
    new Command('wait')
      .description("wait for a terminal's process to exit, and exit with its code")
      .argument('<id>', 'terminal')
      .option('--exit', 'for the exit; at present the only condition, and the default')
      .option('--after-seq <n>', 'for an exit after this sequence number', (text) =>
        parseCount('--after-seq', text),
      )
      .option('--timeout <duration>', 'give up after this long, with exit code 124', parseDuration),
  )
    .option('--json', 'print the response as JSON')
    .action(
      processAction(async (id: string, flags: Flags) => {
        using connection = await openConnection(flags);
        const request = {
          terminal: connection.ref(id),
          condition: { case: 'exit', value: true },
          ...(flags.afterSeq !== undefined && { afterSeq: flags.afterSeq }),
        } as const;
        try {
          const response = await connection.client.terminals.wait(
            request,
            flags.timeout === undefined ? {} : { timeoutMs: flags.timeout },
          );
          if (flags.json) {
            const { writeJson } = await import('../json.js');
            const { WaitResponseSchema } = await import(
              '../../gen/public/grantty/v1/terminal_service_pb.js'
            );
            await writeJson(WaitResponseSchema, response);
          }
          return processExitCode(response.exitStatus);
        } catch (error) {
          if (errorCode(error) !== 'DEADLINE_EXCEEDED') throw error;
          reportFailure(error);
          return ExitCode.TIMED_OUT;
        }
      }),
    );
}
