/** `ctx terminal update`: another title, other labels. */
import { Command, Option } from 'commander';
import type { Init } from '../../client/grpc.js';
import type { UpdateTerminalRequestSchema } from '../../gen/public/grantty/v1/terminal_service_pb.js';
import { action } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { UsageError } from '../exitCode.js';
import { printTerminal } from '../printTerminal.js';
import { collect, parsePairs } from '../values.js';

interface Flags extends ConnectionFlags {
  readonly title?: string;
  readonly label?: readonly string[];
  readonly clearLabels?: boolean;
  readonly json?: boolean;
}

export function updateCommand(): Command {
  return withConnectionFlags(
    new Command('update')
      .description('change the title and the labels of a terminal')
      .argument('<id>', 'terminal')
      .option('--title <title>', 'title for people; empty: none')
      .addOption(
        new Option(
          '--label <key=value>',
          'label, in place of all that there are; may be repeated',
        ).argParser(collect),
      )
      .addOption(new Option('--clear-labels', 'take all labels away').conflicts('label')),
  )
    .option('--json', 'print the terminal as JSON')
    .action(
      action(async (id: string, flags: Flags) => {
        const changes = changesOf(flags);
        using connection = await openConnection(flags);
        const { terminal } = await connection.client.terminals.updateTerminal({
          terminal: connection.ref(id),
          ...changes,
        });
        if (flags.json) await printTerminal(terminal, true);
      }),
    );
}

function changesOf({
  title,
  label,
  clearLabels,
}: Flags): Pick<Init<typeof UpdateTerminalRequestSchema>, 'title' | 'labels'> {
  if (title === undefined && label === undefined && !clearLabels) {
    throw new UsageError('nothing is to be changed: give --title, --label or --clear-labels');
  }
  return {
    ...(title !== undefined && { title }),
    ...((label || clearLabels) && { labels: { entries: parsePairs('--label', label) } }),
  };
}
