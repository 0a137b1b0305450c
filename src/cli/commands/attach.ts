/** `ctx terminal attach`: this terminal becomes that one; exits with the process's code. */
import { Command } from 'commander';
import { processAction } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { parseDetachKeys, withDetachKeys } from '../detachKeys.js';

interface Flags extends ConnectionFlags {
  readonly detachKeys: string;
}

export function attachCommand(): Command {
  return withConnectionFlags(
    withDetachKeys(
      new Command('attach')
        .description("connect this terminal to another one; exits with its process's code")
        .argument('<id>', 'terminal'),
    ),
  ).action(
    processAction(async (id: string, flags: Flags) => {
      const detachKeys = parseDetachKeys(flags.detachKeys);
      const { attachTerminal } = await import('../attachSession.js');
      using connection = await openConnection(flags);
      const { code } = await attachTerminal(connection.client, connection.ref(id), {
        detachKeys,
        followWindow: true,
        history: 'recent',
      });
      return code;
    }),
  );
}
