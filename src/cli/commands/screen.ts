/** `ctx terminal screen`: a terminal's screen as a person would see it. */
import { Command } from 'commander';
import { action } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { writeBytes } from '../output.js';

interface Flags extends ConnectionFlags {
  readonly ansi?: boolean;
  readonly json?: boolean;
}

export function screenCommand(): Command {
  return withConnectionFlags(
    new Command('screen')
      .description('print the screen of a terminal as it is now')
      .argument('<id>', 'terminal')
      .option('--ansi', 'with the escape sequences that draw it, colours included'),
  )
    .option('--json', 'print the response as JSON')
    .action(
      action(async (id: string, { ansi, json, ...flags }: Flags) => {
        const [{ GetScreenResponseSchema, ScreenFormat }, { writeJson }] = await Promise.all([
          import('../../gen/public/grantty/v1/session_service_pb.js'),
          import('../json.js'),
        ]);
        using connection = await openConnection(flags);
        const response = await connection.client.sessions.getScreen({
          terminal: connection.ref(id),
          format: ansi ? ScreenFormat.ANSI : ScreenFormat.TEXT,
        });
        if (json) return void (await writeJson(GetScreenResponseSchema, response));
        const { screen } = response;
        await writeBytes(screen.endsWith('\n') ? screen : `${screen}\n`);
      }),
    );
}
