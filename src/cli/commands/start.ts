/** `ctx terminal start`: a new process in an exited terminal; prints its id. */
import { Command } from 'commander';
import { action } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { writeLine } from '../output.js';
import { printTerminal } from '../printTerminal.js';
import { parseSize, type Size } from '../values.js';

interface Flags extends ConnectionFlags {
  readonly size?: Size;
  readonly json?: boolean;
}

export function startCommand(): Command {
  return withConnectionFlags(
    new Command('start')
      .description('run the command of an exited terminal again; its output goes on')
      .argument('<id>', 'terminal')
      .option('--size <colsxrows>', 'size to start at (default: the last one)', parseSize),
  )
    .option('--json', 'print the terminal as JSON')
    .action(
      action(async (id: string, flags: Flags) => {
        using connection = await openConnection(flags);
        const { terminal } = await connection.client.terminals.startTerminal({
          terminal: connection.ref(id),
          ...(flags.size && { size: flags.size }),
        });
        if (flags.json) await printTerminal(terminal, true);
        else await writeLine(terminal?.ref?.id ?? '');
      }),
    );
}
