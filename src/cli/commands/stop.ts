/** `ctx terminal stop`: asks a terminal's processes to end, and waits. */
import { Command } from 'commander';
import { action } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { reportEnding } from '../ending.js';
import { parseDuration } from '../values.js';

interface Flags extends ConnectionFlags {
  readonly grace?: number;
  readonly json?: boolean;
}

export function stopCommand(): Command {
  return withConnectionFlags(
    new Command('stop')
      .description('ask all processes of a terminal to end (SIGTERM, SIGHUP; never SIGKILL)')
      .argument('<id>', 'terminal')
      .option('--grace <duration>', 'how long to wait for them (default: 5s)', parseDuration),
  )
    .option('--json', 'print the response as JSON')
    .action(
      action(async (id: string, flags: Flags) => {
        const [{ durationFromMs }, { StopResponseSchema }, { writeJson }] = await Promise.all([
          import('@bufbuild/protobuf/wkt'),
          import('../../gen/public/grantty/v1/terminal_service_pb.js'),
          import('../json.js'),
        ]);
        using connection = await openConnection(flags);
        const response = await connection.client.terminals.stop({
          terminal: connection.ref(id),
          ...(flags.grace !== undefined && { grace: durationFromMs(flags.grace) }),
        });
        if (flags.json) await writeJson(StopResponseSchema, response);
        return reportEnding(
          response,
          'give a longer --grace, or end them with "ctx terminal kill"',
        );
      }),
    );
}
