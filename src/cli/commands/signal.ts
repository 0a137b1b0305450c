/** `ctx terminal signal`: a signal for the foreground process group of a terminal. */
import { Command } from 'commander';
import { signalNumbers } from '../../core/signals.js';
import { action } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { UsageError } from '../exitCode.js';

interface Flags extends ConnectionFlags {
  readonly json?: boolean;
}

/** Without `SIG`, as the enum of the contract has it. */
type ShortName =
  | 'HUP'
  | 'INT'
  | 'QUIT'
  | 'KILL'
  | 'USR1'
  | 'USR2'
  | 'TERM'
  | 'CONT'
  | 'STOP'
  | 'TSTP'
  | 'TTIN'
  | 'TTOU'
  | 'WINCH'
  | 'ALRM';

export function signalCommand(): Command {
  return withConnectionFlags(
    new Command('signal')
      .description('send a signal to the foreground process group of a terminal')
      .argument('<id>', 'terminal')
      .argument('<signal>', 'signal, with or without SIG', parseSignal),
  )
    .option('--json', 'print the response as JSON')
    .action(
      action(async (id: string, signal: ShortName, flags: Flags) => {
        const [{ Signal }, { SignalResponseSchema }, { writeJson }] = await Promise.all([
          import('../../gen/public/grantty/v1/terminal_pb.js'),
          import('../../gen/public/grantty/v1/terminal_service_pb.js'),
          import('../json.js'),
        ]);
        using connection = await openConnection(flags);
        const response = await connection.client.terminals.signal({
          terminal: connection.ref(id),
          signal: Signal[signal],
        });
        if (flags.json) await writeJson(SignalResponseSchema, response);
      }),
    );
}

export function parseSignal(text: string): ShortName {
  const short = text.toUpperCase().replace(/^SIG/, '');
  if (Object.hasOwn(signalNumbers, `SIG${short}`)) return short as ShortName;
  const known = Object.keys(signalNumbers).map((name) => name.slice(3));
  throw new UsageError(`"${text}" is not a signal; known are ${known.join(', ')}`);
}
