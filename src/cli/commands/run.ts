/** `ctx terminal run`: create, attach, and exit with the command's code. */
import { Command } from 'commander';
import { processAction, reportFailure } from '../action.js';
import { openConnection, withConnectionFlags } from '../connection.js';
import { parseDetachKeys, withDetachKeys } from '../detachKeys.js';
import { createRequest, type LaunchFlags, withLaunchFlags } from './create.js';

interface Flags extends LaunchFlags {
  readonly rm?: boolean;
  readonly detachKeys: string;
}

export function runCommand(): Command {
  return withConnectionFlags(
    withDetachKeys(
      withLaunchFlags(
        new Command('run').description(
          "create a terminal, attach to it, and exit with its command's code; the terminal stays",
        ),
      ).option('--rm', 'delete the terminal once its command has exited'),
    ),
  ).action(
    processAction(async (agent: string, command: string[], flags: Flags) => {
      const detachKeys = parseDetachKeys(flags.detachKeys);
      const { attachTerminal, windowSize } = await import('../attachSession.js');
      using connection = await openConnection(flags);
      const size = flags.size ?? windowSize();
      const { terminal } = await connection.client.terminals.createTerminal(
        createRequest(agent, command, size ? { ...flags, size } : flags, connection.owner),
      );
      if (terminal?.ref?.owner === undefined) throw new TypeError('the server sent no terminal');
      const { id, owner } = terminal.ref;
      const { code, exited } = await attachTerminal(
        connection.client,
        { id, owner },
        {
          detachKeys,
          // A size that was asked for is not changed to the window's.
          followWindow: flags.size === undefined,
          history: 'all',
        },
      );
      if (flags.rm && exited) {
        await connection.client.terminals
          .deleteTerminal({ terminal: { id, owner }, uid: terminal.uid })
          // The command has done what it did: its code stays what this one gives.
          .catch(reportFailure);
      }
      return code;
    }),
  );
}
