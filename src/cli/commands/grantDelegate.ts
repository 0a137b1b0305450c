/** `ctx grant delegate`: a narrower token for somebody who acts in one's name. */
import { Command } from 'commander';
import { action } from '../action.js';
import { certificateThumbprintOf } from '../certificateThumbprint.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { note, writeLine } from '../output.js';
import { collect, parseCount, parseDuration } from '../values.js';
import { parseActionsFlag, parseConstraintFlags } from './grantMint.js';

interface Flags extends ConnectionFlags {
  readonly grant?: string;
  readonly actions?: string;
  readonly resource?: string;
  readonly constraint?: readonly string[];
  readonly ttl?: number;
  readonly maxDepth?: string;
  readonly cnf?: string;
  readonly requestId?: string;
  readonly json?: boolean;
}

export function grantDelegateCommand(): Command {
  return withConnectionFlags(
    new Command('delegate')
      .description('have the server sign a narrower token; what is left out is as in your own')
      .argument('<actor>', 'who is going to act'),
  )
    .option('--grant <id>', 'grant of your token to take a part of (default: the only one)')
    .option('--actions <list>', 'separated by commas')
    .option('--resource <tuple>', 'OWNER/AGENT/SESSION/TERMINAL, each a name, prefix*, or *')
    .option(
      '--constraint <name=json>',
      'constraint in the place of that of your grant, like max_terminals=3; may be repeated',
      collect,
    )
    .option('--ttl <duration>', 'life of the token (default: as long as yours)', parseDuration)
    .option('--max-depth <n>', 'steps that the line of tokens may have (default: as yours)')
    .option('--cnf <cert>', 'PEM of the client certificate that the token is bound to')
    .option('--request-id <id>', 'makes the command safe to repeat')
    .option('--json', 'print the response as JSON, token included')
    .action(
      action(async (actor: string, flags: Flags) => {
        const { partOfGrant } = await import('../grantPart.js');
        using connection = await openConnection(flags);
        const { grants } = connection.client;
        const own = await grants.introspect({});
        const { grant, resource } = flags;
        const part = {
          ...(grant !== undefined && { grant }),
          ...(resource !== undefined && { resource }),
          ...(flags.actions !== undefined && { actions: parseActionsFlag(flags.actions) }),
          constraints: parseConstraintFlags(flags.constraint),
        };
        const response = await grants.delegate({
          actor,
          grants: [partOfGrant(own.grants, part)],
          ...(flags.ttl !== undefined && {
            lifetime: { seconds: BigInt(Math.round(flags.ttl / 1000)) },
          }),
          ...(flags.maxDepth !== undefined && {
            maxDepth: Number(parseCount('--max-depth', flags.maxDepth)),
          }),
          ...(flags.cnf !== undefined && {
            certificateThumbprint: await certificateThumbprintOf('--cnf', flags.cnf),
          }),
          ...(flags.requestId !== undefined && { requestId: flags.requestId }),
        });
        if (flags.json) {
          const [{ DelegateResponseSchema }, { writeJson }] = await Promise.all([
            import('../../gen/public/grantty/v1/grant_service_pb.js'),
            import('../json.js'),
          ]);
          await writeJson(DelegateResponseSchema, response);
          return;
        }
        await writeLine(response.token);
        const { issuer = '', jti = '' } = response.id ?? {};
        note(`to revoke it: ctx grant revoke ${jti} --iss ${issuer}`);
      }),
    );
}
