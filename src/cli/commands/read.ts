/** `ctx terminal read`: a page of the lines that a terminal has printed, as a person would see them. */
import { Command } from 'commander';
import { action } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { writeBytes } from '../output.js';
import { parseUint32 } from '../values.js';

interface Flags extends ConnectionFlags {
  readonly offset?: number;
  readonly count?: number;
  readonly json?: boolean;
}

export function readCommand(): Command {
  return withConnectionFlags(
    new Command('read')
      .description('print the newest lines of a terminal, rendered, at most 500')
      .argument('<id>', 'terminal')
      .option('--offset <n>', 'leave out this many of the newest lines', (text) =>
        parseUint32('--offset', text),
      )
      .option('--count <n>', 'print at most this many lines', (text) =>
        parseUint32('--count', text),
      ),
  )
    .option('--json', 'print the response as JSON')
    .action(
      action(async (id: string, { offset = 0, count = 0, json, ...flags }: Flags) => {
        using connection = await openConnection(flags);
        const response = await connection.client.sessions.readScrollback({
          terminal: connection.ref(id),
          offset,
          count,
        });
        if (!json) return void (await writeBytes(response.text));
        const [{ ReadScrollbackResponseSchema }, { writeJson }] = await Promise.all([
          import('../../gen/public/grantty/v1/session_service_pb.js'),
          import('../json.js'),
        ]);
        await writeJson(ReadScrollbackResponseSchema, response);
      }),
    );
}
