/** `ctx terminal find`: where a pattern stands in the lines of a terminal. */
import { Command } from 'commander';
import { action } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { ExitCode } from '../exitCode.js';
import { note, writeLine } from '../output.js';

interface Flags extends ConnectionFlags {
  readonly json?: boolean;
}

export function findCommand(): Command {
  return withConnectionFlags(
    new Command('find')
      .description(
        'print the rendered lines of a terminal that match, newest first, with their numbers; 1 when none does',
      )
      .argument('<id>', 'terminal')
      .argument('<regex>', 'pattern in RE2 syntax'),
  )
    .option('--json', 'print the response as JSON')
    .action(
      action(async (id: string, pattern: string, flags: Flags) => {
        using connection = await openConnection(flags);
        const response = await connection.client.sessions.findText({
          terminal: connection.ref(id),
          pattern,
        });
        if (flags.json) {
          const [{ FindTextResponseSchema }, { writeJson }] = await Promise.all([
            import('../../gen/public/grantty/v1/session_service_pb.js'),
            import('../json.js'),
          ]);
          await writeJson(FindTextResponseSchema, response);
        } else {
          const lines = new Map(response.matches.map(({ line, text }) => [line, text]));
          for (const [line, text] of lines) await writeLine(`${line}:${text}`);
          if (response.truncated) note('there are more matches');
        }
        return response.matches.length > 0 ? ExitCode.OK : ExitCode.FAILURE;
      }),
    );
}
