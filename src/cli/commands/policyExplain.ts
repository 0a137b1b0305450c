/** `ctx policy explain`: what policies decide on one request, and which of them. */
import { readFile } from 'node:fs/promises';
import { Command } from 'commander';
import type { Explanation } from '../../auth/cedarPolicy.js';
import { action } from '../action.js';
import { ExitCode, UsageError } from '../exitCode.js';
import { readAll } from '../input.js';
import { writeLine } from '../output.js';
import { collect } from '../values.js';
import { parseSignal } from './signal.js';

interface Flags {
  readonly policy?: string;
  readonly request?: string;
  readonly issuer: string;
  readonly subject: string;
  readonly client?: string;
  readonly actor?: readonly string[];
  readonly action?: string;
  readonly resource?: string;
  readonly peer: string;
  readonly proof?: boolean;
  readonly signal?: string;
  readonly raises?: readonly string[];
  readonly cwd: string;
  readonly env?: readonly string[];
  readonly json?: boolean;
}

export function policyExplainCommand(): Command {
  return new Command('explain')
    .description('say what policies decide on a request that a grant covers, and which of them')
    .argument('[command...]', 'argv that would run, for terminal.create; after --')
    .option('--policy <dir>', 'directory of policies (default: those that come with the program)')
    .option('--request <file>', 'the request as JSON, as in table tests; - for standard input')
    .option('--iss, --issuer <iss>', "the token's iss", 'urn:grantty:dev')
    .option('--sub, --subject <sub>', "the token's sub", 'somebody')
    .option('--client <id>', "the token's client_id (default: the subject)")
    .option('--actor <sub>', 'actor of a delegated token, the latest first; repeatable', collect)
    .option('--action <action>', 'such as terminal.kill')
    .option('--resource <tuple>', 'OWNER/AGENT/SESSION/TERMINAL')
    .option('--peer <address>', "the client's IP address", '127.0.0.1')
    .option('--proof', 'the token is bound to the certificate of the connection')
    .option('--signal <name>', 'of a terminal.signal, like SIGINT')
    .option('--raises <name>', 'signal that a terminal.write would raise; repeatable', collect)
    .option('--cwd <path>', 'of a terminal.create', '/')
    .option('--env <name>', 'variable that a terminal.create sets; repeatable', collect)
    .option('--json', 'print one JSON document')
    .action(
      action(async (command: readonly string[], flags: Flags) => {
        const [{ setOf }, { CedarPolicy }, request] = await Promise.all([
          import('../policyDir.js'),
          import('../../auth/cedarPolicy.js'),
          requestOf(command, flags),
        ]);
        const { set } = await setOf(flags.policy);
        const explanation = new CedarPolicy(set).explain(request);
        await writeLine(flags.json ? toJson(explanation) : toText(explanation));
        return ExitCode.OK;
      }),
    );
}

async function requestOf(command: readonly string[], flags: Flags) {
  const { parsePolicyRequest } = await import('../../auth/policyRequestJson.js');
  const written =
    flags.request === undefined ? fromFlags(command, flags) : await readRequest(flags.request);
  try {
    return parsePolicyRequest(written);
  } catch (error) {
    throw new UsageError(`the request is not valid: ${(error as Error).message}`);
  }
}

function fromFlags(command: readonly string[], flags: Flags): unknown {
  if (flags.action === undefined || flags.resource === undefined) {
    throw new UsageError('give --action and --resource, or --request');
  }
  const [owner, agent, session, terminal, ...rest] = flags.resource.split('/');
  if (terminal === undefined || rest.length > 0) {
    throw new UsageError(`--resource "${flags.resource}": write OWNER/AGENT/SESSION/TERMINAL`);
  }
  return {
    principal: {
      issuer: flags.issuer,
      subject: flags.subject,
      client_id: flags.client,
      actors: flags.actor,
    },
    action: flags.action,
    resource: { owner, agent, session, terminal },
    peer: flags.peer,
    proves_possession: flags.proof,
    signal: flags.signal === undefined ? undefined : fullName(flags.signal),
    raises: flags.raises?.map(fullName),
    ...(command.length > 0 && { launch: { command, cwd: flags.cwd, env_names: flags.env } }),
  };
}

/** Named here as for `terminal signal`: INT is SIGINT. */
function fullName(signal: string): string {
  return `SIG${parseSignal(signal)}`;
}

async function readRequest(file: string): Promise<unknown> {
  const text =
    file === '-'
      ? Buffer.from(await readAll(process.stdin)).toString()
      : await readFile(file, 'utf8');
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`--request: ${(error as Error).message}`);
  }
}

function toJson({ permit, policyIds, errors, hash }: Explanation): string {
  return JSON.stringify({
    decision: permit ? 'permit' : 'deny',
    policies: policyIds,
    errors: errors.map(({ policyId, message }) => ({ policy: policyId, message })),
    hash,
  });
}

function toText({ permit, policyIds, errors, hash }: Explanation): string {
  return [
    `decision  ${permit ? 'permit' : 'deny'}`,
    `policies  ${policyIds.length > 0 ? policyIds.join(', ') : 'none permits it'}`,
    ...errors.map(
      ({ policyId, message }) => `error     ${policyId ? `${policyId}: ` : ''}${message}`,
    ),
    `hash      ${hash}`,
  ].join('\n');
}
