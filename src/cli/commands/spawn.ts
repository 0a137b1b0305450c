/** `ctx terminal spawn`: a new session; prints its id. */
import { Command } from 'commander';
import { action } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { writeLine } from '../output.js';
import { collect, parsePairs, parseSize, type Size } from '../values.js';

interface Flags extends ConnectionFlags {
  readonly session?: string;
  readonly type: string;
  readonly name?: string;
  readonly cwd?: string;
  readonly env?: readonly string[];
  readonly size?: Size;
  readonly label?: readonly string[];
  readonly json?: boolean;
}

export function spawnCommand(): Command {
  return withConnectionFlags(
    new Command('spawn')
      .description('start a session to send to, and print its id once it is ready')
      .argument('<agent>', 'agent that the session belongs to')
      .option('--session <session>', 'session of the agent (default: "default")')
      .option('--type <type>', 'type of session', 'shell')
      .option('--name <name>', 'name for people, which no other session of the agent has')
      .option('--cwd <path>', "absolute working directory (default: the owner's home)")
      .option('--env <key=value>', 'variable of its environment; may be repeated', collect)
      .option('--size <colsxrows>', 'size to start at (default: 160x40)', parseSize)
      .option('--label <key=value>', 'label; may be repeated', collect),
  )
    .option('--json', 'print the response as JSON')
    .action(
      action(async (agent: string, flags: Flags) => {
        using connection = await openConnection(flags);
        const { owner } = connection;
        const response = await connection.client.sessions.spawn({
          agent,
          type: flags.type,
          env: parsePairs('--env', flags.env),
          labels: parsePairs('--label', flags.label),
          ...(owner !== undefined && { owner }),
          ...(flags.session !== undefined && { session: flags.session }),
          ...(flags.name !== undefined && { name: flags.name }),
          ...(flags.cwd !== undefined && { cwd: flags.cwd }),
          ...(flags.size && { size: flags.size }),
        });
        if (!flags.json) return void (await writeLine(response.session?.terminal?.id ?? ''));
        const [{ SpawnResponseSchema }, { writeJson }] = await Promise.all([
          import('../../gen/public/grantty/v1/session_service_pb.js'),
          import('../json.js'),
        ]);
        await writeJson(SpawnResponseSchema, response);
      }),
    );
}
