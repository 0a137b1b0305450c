/** `ctx terminal status`: one terminal's record. Changes nothing. */
import { Command } from 'commander';
import { action } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { printTerminal } from '../printTerminal.js';

interface Flags extends ConnectionFlags {
  readonly json?: boolean;
}

export function statusCommand(): Command {
  return withConnectionFlags(
    new Command('status')
      .description('print the record of a terminal')
      .argument('<id>', 'terminal'),
  )
    .option('--json', 'print it as JSON')
    .action(
      action(async (id: string, flags: Flags) => {
        using connection = await openConnection(flags);
        const { terminal } = await connection.client.terminals.getTerminal({
          terminal: connection.ref(id),
        });
        await printTerminal(terminal, flags.json);
      }),
    );
}
