/** `ctx terminal create`: a new terminal; prints its id. */
import { Command } from 'commander';
import type { Init } from '../../client/grpc.js';
import type { CreateTerminalRequestSchema } from '../../gen/public/grantty/v1/terminal_service_pb.js';
import { action } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { writeLine } from '../output.js';
import { printTerminal } from '../printTerminal.js';
import { collect, parsePairs, parseSize, type Size } from '../values.js';

export interface LaunchFlags extends ConnectionFlags {
  readonly session?: string;
  readonly id?: string;
  readonly cwd?: string;
  readonly env?: readonly string[];
  readonly size?: Size;
  readonly label?: readonly string[];
  readonly title?: string;
}

interface Flags extends LaunchFlags {
  readonly json?: boolean;
}

/** The flags that say what is launched; `run` has the same. */
export function withLaunchFlags(command: Command): Command {
  return command
    .argument('<agent>', 'agent that the terminal belongs to')
    .argument('[command...]', "command and arguments, after --; without it the owner's login shell")
    .option('--session <session>', 'session of the agent (default: "default")')
    .option('--id <id>', 'id (default: terminal-AGENT-SESSION)')
    .option('--cwd <path>', "absolute working directory (default: the owner's home)")
    .option('--env <key=value>', 'variable of its environment; may be repeated', collect)
    .option('--size <colsxrows>', 'size to start at (default: 80x24)', parseSize)
    .option('--label <key=value>', 'label; may be repeated', collect)
    .option('--title <title>', 'title for people');
}

export function createCommand(): Command {
  return withConnectionFlags(
    withLaunchFlags(new Command('create').description('create a terminal and print its id')),
  )
    .option('--json', 'print the terminal as JSON')
    .action(
      action(async (agent: string, command: string[], flags: Flags) => {
        using connection = await openConnection(flags);
        const { terminal } = await connection.client.terminals.createTerminal(
          createRequest(agent, command, flags, connection.owner),
        );
        if (flags.json) await printTerminal(terminal, true);
        else await writeLine(terminal?.ref?.id ?? '');
      }),
    );
}

export function createRequest(
  agent: string,
  command: readonly string[],
  flags: LaunchFlags,
  owner: string | undefined,
): Init<typeof CreateTerminalRequestSchema> {
  return {
    agent,
    command: [...command],
    env: parsePairs('--env', flags.env),
    labels: parsePairs('--label', flags.label),
    ...(owner !== undefined && { owner }),
    ...(flags.session !== undefined && { session: flags.session }),
    ...(flags.id !== undefined && { id: flags.id }),
    ...(flags.cwd !== undefined && { cwd: flags.cwd }),
    ...(flags.size && { size: flags.size }),
    ...(flags.title !== undefined && { title: flags.title }),
  };
}
