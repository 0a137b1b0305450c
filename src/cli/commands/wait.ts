/** `ctx terminal wait`: for the exit of a terminal's process, for silence, or for a pattern. */
import { Command, Option } from 'commander';
import type { Init } from '../../client/grpc.js';
import { errorCode } from '../../core/errors.js';
import type {
  WaitRequestSchema,
  WaitResponse,
} from '../../gen/public/grantty/v1/terminal_service_pb.js';
import { action, processAction, reportFailure } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { ExitCode } from '../exitCode.js';
import { note } from '../output.js';
import { parseCount, parseDuration } from '../values.js';

interface Flags extends ConnectionFlags {
  readonly idle?: number;
  readonly pattern?: string;
  readonly afterSeq?: bigint;
  readonly timeout?: number;
  readonly json?: boolean;
}

export function waitCommand(): Command {
  return withConnectionFlags(
    new Command('wait')
      .description(
        'wait for the exit of a terminal and exit with its code; or for silence or a pattern: 0 when it came, 1 when the exit came first, 124 after the time-out',
      )
      .argument('<id>', 'terminal')
      .addOption(new Option('--exit', 'for the exit, the default').conflicts(['idle', 'pattern']))
      .addOption(
        new Option('--idle <duration>', 'until nothing has been printed for this long')
          .argParser(parseDuration)
          .conflicts('pattern'),
      )
      .option('--pattern <regex>', 'until the output matches, in RE2 syntax')
      .option('--after-seq <n>', 'look at what comes after this sequence number', (text) =>
        parseCount('--after-seq', text),
      )
      .option('--timeout <duration>', 'give up after this long, with exit code 124', parseDuration),
  )
    .option('--json', 'print the response as JSON')
    .action((id: string, flags: Flags) => {
      // Only the wait for an exit gives the process's code, and so needs one of its own to fail with.
      const isExit = flags.idle === undefined && flags.pattern === undefined;
      return isExit ? forExit(id, flags) : forCondition(id, flags);
    });
}

const forExit = processAction(async (id: string, flags: Flags) => {
  try {
    const [{ processExitCode }, { exitStatus }] = await Promise.all([
      import('../processExit.js'),
      wait(id, flags),
    ]);
    return processExitCode(exitStatus);
  } catch (error) {
    if (errorCode(error) !== 'DEADLINE_EXCEEDED') throw error;
    reportFailure(error);
    return ExitCode.TIMED_OUT;
  }
});

const forCondition = action(async (id: string, flags: Flags) => {
  const [{ WaitOutcome }, { noteEnding }, { outcome, exitStatus }] = await Promise.all([
    import('../../gen/public/grantty/v1/terminal_service_pb.js'),
    import('../processExit.js'),
    wait(id, flags),
  ]);
  if (outcome !== WaitOutcome.EXIT) return ExitCode.OK;
  noteEnding(exitStatus);
  note('the process exited before that');
  return ExitCode.FAILURE;
});

async function wait(id: string, flags: Flags): Promise<WaitResponse> {
  using connection = await openConnection(flags);
  const response = await connection.client.terminals.wait(
    {
      terminal: connection.ref(id),
      condition: await conditionOf(flags),
      ...(flags.afterSeq !== undefined && { afterSeq: flags.afterSeq }),
    },
    flags.timeout === undefined ? {} : { timeoutMs: flags.timeout },
  );
  if (flags.json) {
    const [{ writeJson }, { WaitResponseSchema }] = await Promise.all([
      import('../json.js'),
      import('../../gen/public/grantty/v1/terminal_service_pb.js'),
    ]);
    await writeJson(WaitResponseSchema, response);
  }
  return response;
}

async function conditionOf({
  idle,
  pattern,
}: Flags): Promise<NonNullable<Init<typeof WaitRequestSchema>['condition']>> {
  if (pattern !== undefined) return { case: 'pattern', value: pattern };
  if (idle === undefined) return { case: 'exit', value: true };
  const { durationFromMs } = await import('@bufbuild/protobuf/wkt');
  return { case: 'idle', value: durationFromMs(idle) };
}
