/** `ctx terminal rm`: deletes an exited terminal, its record and its output. */
import { Command } from 'commander';
import { action } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';

interface Flags extends ConnectionFlags {
  readonly uid?: string;
  readonly json?: boolean;
}

export function rmCommand(): Command {
  return withConnectionFlags(
    new Command('rm')
      .description('delete an exited terminal, its record and all of its output')
      .argument('<id>', 'terminal')
      .option('--uid <uid>', 'only this incarnation of the id, as status shows it'),
  )
    .option('--json', 'print the response as JSON')
    .action(
      action(async (id: string, flags: Flags) => {
        using connection = await openConnection(flags);
        const response = await connection.client.terminals.deleteTerminal({
          terminal: connection.ref(id),
          ...(flags.uid !== undefined && { uid: flags.uid }),
        });
        if (!flags.json) return;
        const { writeJson } = await import('../json.js');
        const { DeleteTerminalResponseSchema } = await import(
          '../../gen/public/grantty/v1/terminal_service_pb.js'
        );
        await writeJson(DeleteTerminalResponseSchema, response);
      }),
    );
}
