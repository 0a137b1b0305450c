/** `ctx terminal close`: ends a session; its record and history stay. */
import { Command } from 'commander';
import { action } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { reportEnding } from '../ending.js';

interface Flags extends ConnectionFlags {
  readonly reason?: string;
  readonly json?: boolean;
}

export function closeCommand(): Command {
  return withConnectionFlags(
    new Command('close')
      .description('end all processes of a session and take it off the list')
      .argument('<id>', 'session')
      .option('--reason <reason>', 'why, for the record'),
  )
    .option('--json', 'print the response as JSON')
    .action(
      action(async (id: string, flags: Flags) => {
        const [{ CloseResponseSchema }, { writeJson }] = await Promise.all([
          import('../../gen/public/grantty/v1/session_service_pb.js'),
          import('../json.js'),
        ]);
        using connection = await openConnection(flags);
        const response = await connection.client.sessions.close({
          terminal: connection.ref(id),
          ...(flags.reason !== undefined && { reason: flags.reason }),
        });
        if (flags.json) await writeJson(CloseResponseSchema, response);
        return reportEnding(response, 'they cannot be killed yet; try again');
      }),
    );
}
