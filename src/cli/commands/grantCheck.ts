/** `ctx grant check`: whether the server would allow something, and why. */
import { Command } from 'commander';
import { capabilities } from '../../core/capability.js';
import { isSignalName, type SignalName } from '../../core/signals.js';
import type { CheckAccessResponse } from '../../gen/public/grantty/v1/grant_service_pb.js';
import { action } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { ExitCode, UsageError } from '../exitCode.js';
import { writeLine } from '../output.js';
import { collect } from '../values.js';

interface Flags extends ConnectionFlags {
  readonly signal?: SignalName;
  readonly signalBytes?: boolean;
  readonly agent?: string;
  readonly session?: string;
  readonly cwd?: string;
  readonly env?: readonly string[];
  readonly json?: boolean;
}

export function grantCheckCommand(): Command {
  return withConnectionFlags(
    new Command('check')
      .description('say whether an action would be allowed, and why; exit code 77 if not')
      .argument('<action>', `one of ${capabilities.join(', ')}`)
      .argument('<id>', 'terminal')
      .argument('[command...]', 'with --agent: command of the terminal to be made, after --'),
  )
    .option('--signal <name>', 'with terminal.signal: signal to be sent', parseSignal)
    .option('--signal-bytes', 'with terminal.write: the input would hold ^C, ^\\ or ^Z')
    .option('--agent <agent>', 'with terminal.create: agent of a terminal to be made')
    .option('--session <session>', 'its session (default: "default")')
    .option('--cwd <path>', "its working directory (default: the owner's home)")
    .option('--env <name>', 'variable that the request sets; may be repeated', collect)
    .option('--json', 'print the response as JSON')
    .action(
      action(async (wanted: string, id: string, command: readonly string[], flags: Flags) => {
        const [{ signalOf }, { CheckAccessResponseSchema }, { writeJson }, { ErrorReason }] =
          await Promise.all([
            import('../grantPart.js'),
            import('../../gen/public/grantty/v1/grant_service_pb.js'),
            import('../json.js'),
            import('../../gen/public/grantty/v1/errors_pb.js'),
          ]);
        using connection = await openConnection(flags);
        const { agent, session, cwd, env = [], signal, signalBytes } = flags;
        const create = agent !== undefined && {
          agent,
          command: [...command],
          envNames: [...env],
          ...(session !== undefined && { session }),
          ...(cwd !== undefined && { cwd }),
        };
        const response = await connection.client.grants.checkAccess({
          action: wanted,
          terminal: connection.ref(id),
          ...(create && { create }),
          ...(signal !== undefined && { signal: signalOf(signal) }),
          ...(signalBytes && { signalBytes }),
        });
        if (flags.json) await writeJson(CheckAccessResponseSchema, response);
        else await writeLine(explanation(response, ErrorReason[response.reason ?? 0] ?? ''));
        return response.allowed ? ExitCode.OK : ExitCode.DENIED;
      }),
    );
}

function explanation(response: CheckAccessResponse, reason: string): string {
  const { allowed, grantId, constraint, considered, policyIds, decisionId } = response;
  const refused = constraint === '' ? reason : `${reason}, by ${constraint}`;
  return [
    allowed ? `allowed by grant ${grantId}` : `denied: ${refused}`,
    ...considered
      .filter(({ covers }) => !covers)
      .map((one) => `  grant ${one.grantId} does not cover it: ${one.failed}`),
    ...(policyIds.length > 0 ? [`  policies: ${policyIds.join(', ')}`] : []),
    `  decision ${decisionId}`,
  ].join('\n');
}

function parseSignal(text: string): SignalName {
  const name = text.toUpperCase();
  const full = name.startsWith('SIG') ? name : `SIG${name}`;
  if (isSignalName(full)) return full;
  throw new UsageError(`"${text}" is not a signal that can be sent`);
}
