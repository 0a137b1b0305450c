/** `ctx terminal list`: the terminals that the token may read. Changes nothing. */
import { Command, Option } from 'commander';
import type { Client } from '../../client/connect.js';
import type { Init } from '../../client/grpc.js';
import { terminalStates } from '../../core/terminal.js';
import type { Terminal } from '../../gen/public/grantty/v1/terminal_pb.js';
import type { TerminalFilterSchema } from '../../gen/public/grantty/v1/terminal_service_pb.js';
import { action } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { isLoss, LOSS_NOTE } from '../interruption.js';
import { note, writeLine } from '../output.js';
import { collect, parsePairs } from '../values.js';

export interface ListFlags extends ConnectionFlags {
  readonly agent?: string;
  readonly session?: string;
  readonly state?: readonly string[];
  readonly label?: readonly string[];
  readonly watch?: boolean;
  readonly quiet?: boolean;
  readonly json?: boolean;
}

type Filter = Init<typeof TerminalFilterSchema>;

export function listCommand(): Command {
  return withConnectionFlags(
    new Command('list')
      .alias('ls')
      .description('list the terminals that the token may read')
      .option('--agent <agent>', 'only of this agent')
      .option('--session <session>', 'only of this session')
      .addOption(new Option('--state <state...>', 'only in these states').choices(terminalStates))
      .option('--label <key=value>', 'only with this label; may be repeated', collect)
      .option('--watch', 'go on with what changes, a line each; with --json one event a line')
      .addOption(new Option('-q, --quiet', 'print ids only').conflicts(['watch', 'json'])),
  )
    .option('--json', 'print one terminal a line as JSON')
    .action(
      action(async (flags: ListFlags) => {
        using connection = await openConnection(flags);
        const filter = await listFilter(flags, connection.owner);
        await (flags.watch ? watchList : list)(connection.client, filter, flags);
      }),
    );
}

async function listFilter(flags: ListFlags, owner: string | undefined): Promise<Filter> {
  const { TerminalState } = await import('../../gen/public/grantty/v1/terminal_pb.js');
  return {
    labels: parsePairs('--label', flags.label),
    states: (flags.state ?? []).map(
      (name) => TerminalState[name.toUpperCase() as keyof typeof TerminalState],
    ),
    ...(owner !== undefined && { owner }),
    ...(flags.agent !== undefined && { agent: flags.agent }),
    ...(flags.session !== undefined && { session: flags.session }),
  };
}

async function list(client: Client, filter: Filter, { quiet, json }: ListFlags): Promise<void> {
  if (quiet) {
    for await (const { ref } of allTerminals(client, filter)) await writeLine(ref?.id ?? '');
  } else if (json) {
    const [{ writeJson }, { TerminalSchema }] = await Promise.all([
      import('../json.js'),
      import('../../gen/public/grantty/v1/terminal_pb.js'),
    ]);
    for await (const terminal of allTerminals(client, filter)) {
      await writeJson(TerminalSchema, terminal);
    }
  } else {
    const { TerminalTable } = await import('../terminalTable.js');
    const terminals: Terminal[] = [];
    for await (const terminal of allTerminals(client, filter)) terminals.push(terminal);
    await writeLine(new TerminalTable().rows(terminals, new Date()));
  }
}

/** Page after page, each fetched when the one before it is used up. */
async function* allTerminals(
  client: Client,
  filter: Filter,
): AsyncGenerator<Terminal, void, undefined> {
  let pageToken = '';
  do {
    const page = await client.terminals.listTerminals({ filter, pageToken });
    yield* page.terminals;
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
}

/** Ends when the server ends it for good, or with this process. */
async function watchList(client: Client, filter: Filter, { json }: ListFlags): Promise<void> {
  const events = client.watchTerminals(
    { filter },
    {
      onInterruption: (failure, attempt) => {
        if (attempt === 1 && isLoss(failure)) note(LOSS_NOTE);
      },
    },
  );
  if (json) {
    const [{ writeJson }, { create }, { WatchTerminalsResponseSchema }] = await Promise.all([
      import('../json.js'),
      import('@bufbuild/protobuf'),
      import('../../gen/public/grantty/v1/terminal_service_pb.js'),
    ]);
    for await (const event of events) {
      await writeJson(
        WatchTerminalsResponseSchema,
        create(WatchTerminalsResponseSchema, { event }),
      );
    }
    return;
  }
  const { TerminalTable } = await import('../terminalTable.js');
  const table = new TerminalTable();
  let snapshot: Terminal[] = [];
  for await (const event of events) {
    switch (event.case) {
      case 'snapshot':
        if (event.value.terminal) snapshot.push(event.value.terminal);
        break;
      case 'snapshotEnd':
        await writeLine(table.rows(snapshot, new Date()));
        snapshot = [];
        break;
      case 'changed':
        if (event.value.terminal) await writeLine(table.row(event.value.terminal, new Date()));
        break;
      case 'removed':
        await writeLine(table.removed(event.value.ref));
        break;
    }
  }
}
