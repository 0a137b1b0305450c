/** `ctx terminal list`: the terminals that the token may read. Changes nothing. */
import { Command, Option } from 'commander';
import type { Client } from '../../client/connect.js';
import type { Init } from '../../client/grpc.js';
import { terminalStates } from '../../core/terminal.js';
import type { Terminal } from '../../gen/public/grantty/v1/terminal_pb.js';
import type { TerminalFilterSchema } from '../../gen/public/grantty/v1/terminal_service_pb.js';
import { action } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { writeLine } from '../output.js';
import { collect, parsePairs } from '../values.js';

export interface ListFlags extends ConnectionFlags {
  readonly agent?: string;
  readonly session?: string;
  readonly state?: readonly string[];
  readonly label?: readonly string[];
  readonly json?: boolean;
}

export function listCommand(): Command {
  return withConnectionFlags(
    new Command('list')
      .alias('ls')
      .description('list the terminals that the token may read')
      .option('--agent <agent>', 'only of this agent')
      .option('--session <session>', 'only of this session')
      .addOption(new Option('--state <state...>', 'only in these states').choices(terminalStates))
      .option('--label <key=value>', 'only with this label; may be repeated', collect),
  )
    .option('--json', 'print one terminal a line as JSON')
    .action(
      action(async (flags: ListFlags) => {
        using connection = await openConnection(flags);
        const { TerminalState, TerminalSchema } = await import(
          '../../gen/public/grantty/v1/terminal_pb.js'
        );
        const filter = {
          ...listFilter(flags, connection.owner),
          states: (flags.state ?? []).map(
            (name) => TerminalState[name.toUpperCase() as keyof typeof TerminalState],
          ),
        };
        if (flags.json) {
          const { writeJson } = await import('../json.js');
          for await (const terminal of allTerminals(connection.client, filter)) {
            await writeJson(TerminalSchema, terminal);
          }
        } else {
          const { terminalTable } = await import('../record.js');
          const terminals: Terminal[] = [];
          for await (const terminal of allTerminals(connection.client, filter)) {
            terminals.push(terminal);
          }
          await writeLine(terminalTable(terminals, new Date()));
        }
      }),
    );
}

export function listFilter(
  flags: ListFlags,
  owner: string | undefined,
): Init<typeof TerminalFilterSchema> {
  return {
    labels: parsePairs('--label', flags.label),
    ...(owner !== undefined && { owner }),
    ...(flags.agent !== undefined && { agent: flags.agent }),
    ...(flags.session !== undefined && { session: flags.session }),
  };
}

/** Page after page, each fetched when the one before it is used up. */
async function* allTerminals(
  client: Client,
  filter: Init<typeof TerminalFilterSchema>,
): AsyncGenerator<Terminal, void, undefined> {
  let pageToken = '';
  do {
    const page = await client.terminals.listTerminals({ filter, pageToken });
    yield* page.terminals;
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
}
