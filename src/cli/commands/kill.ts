/** `ctx terminal kill`: ends a terminal's processes at once. */
import { Command } from 'commander';
import { action } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { reportEnding } from '../ending.js';

interface Flags extends ConnectionFlags {
  readonly json?: boolean;
}

export function killCommand(): Command {
  return withConnectionFlags(
    new Command('kill')
      .description('end all processes of a terminal with SIGKILL')
      .argument('<id>', 'terminal'),
  )
    .option('--json', 'print the response as JSON')
    .action(
      action(async (id: string, flags: Flags) => {
        const [{ KillResponseSchema }, { writeJson }] = await Promise.all([
          import('../../gen/public/grantty/v1/terminal_service_pb.js'),
          import('../json.js'),
        ]);
        using connection = await openConnection(flags);
        const response = await connection.client.terminals.kill({ terminal: connection.ref(id) });
        if (flags.json) await writeJson(KillResponseSchema, response);
        return reportEnding(response, 'they cannot be killed yet; try again');
      }),
    );
}
