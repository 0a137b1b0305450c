/** `ctx terminal resize`: sets the size of a terminal. */
import { Command } from 'commander';
import { action } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { parseSize, type Size } from '../values.js';

interface Flags extends ConnectionFlags {
  readonly json?: boolean;
}

export function resizeCommand(): Command {
  return withConnectionFlags(
    new Command('resize')
      .description('set the size of a terminal')
      .argument('<id>', 'terminal')
      .argument('<colsxrows>', 'size, like 120x40', parseSize),
  )
    .option('--json', 'print the response as JSON')
    .action(
      action(async (id: string, size: Size, flags: Flags) => {
        using connection = await openConnection(flags);
        const response = await connection.client.terminals.resize({
          terminal: connection.ref(id),
          size,
        });
        if (!flags.json) return;
        const { writeJson } = await import('../json.js');
        const { ResizeResponseSchema } = await import(
          '../../gen/public/grantty/v1/terminal_service_pb.js'
        );
        await writeJson(ResizeResponseSchema, response);
      }),
    );
}
