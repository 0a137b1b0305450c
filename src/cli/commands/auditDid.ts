/** `ctx audit did`: who did what, and what came of it. */
import { Command, Option } from 'commander';
import type { Deed, DidQuestion } from '../../audit/did.js';
import type { WrittenCounted } from '../../audit/writtenRecords.js';
import { action } from '../action.js';
import {
  believableTrail,
  formatTime,
  parseAction,
  parseTime,
  type TrailFlags,
  withTrailFlags,
} from '../auditTrail.js';
import { ExitCode } from '../exitCode.js';
import { note, writeLine } from '../output.js';
import { plain } from '../table.js';

interface Flags
  extends TrailFlags,
    Pick<DidQuestion, 'owner' | 'subject' | 'actor' | 'action' | 'decision'> {
  readonly terminal?: string;
  readonly token?: string;
  readonly from?: string;
  readonly to?: string;
}

export function auditDidCommand(): Command {
  return withTrailFlags(
    new Command('did').description(
      'list decisions in their order, one a line, with their outcomes',
    ),
  )
    .option('--owner <owner>', 'of the terminal')
    .option('--terminal <id>', 'of the terminal')
    .option('--sub, --subject <sub>', "the token's sub")
    .option('--actor <actor>', 'one of those who acted for the subject')
    .option('--token <jti>', "the token's jti")
    .option('--action <action>', 'such as terminal.kill')
    .addOption(new Option('--decision <decision>', 'only these').choices(['allow', 'deny']))
    .option('--from <time>', 'RFC 3339, or seconds since 1970')
    .option('--to <time>', 'RFC 3339, or seconds since 1970')
    .action(
      action(async (flags: Flags) => {
        const { terminal, token, from, to, action: wanted } = flags;
        const { stateDir: _, auditDir: __, config: ___, json, ...asked } = flags;
        if (wanted !== undefined) parseAction(wanted);
        const question: DidQuestion = {
          ...asked,
          ...(terminal !== undefined && { id: terminal }),
          ...(token !== undefined && { jti: token }),
          ...(from !== undefined && { fromMs: parseTime('--from', from) }),
          ...(to !== undefined && { toMs: parseTime('--to', to) }),
        };
        const { did } = await import('../../audit/did.js');
        const dir = await believableTrail(flags);
        let found = false;
        for await (const deed of did(dir, question)) {
          found = true;
          await writeLine(json ? JSON.stringify(deed) : toText(deed));
        }
        if (!found) note(`nothing in ${dir} answers that`);
        return ExitCode.OK;
      }),
    );
}

/** Not a table: it is told while it is read. */
function toText({ intent, outcome }: Deed): string {
  const { target, decision, reason, rpc = '' } = intent;
  const frame = 'frame' in intent && intent.frame ? `(${intent.frame})` : '';
  const method = rpc.slice(rpc.lastIndexOf('/') + 1);
  return [
    formatTime(intent.time_ms),
    decision,
    who(intent),
    `${method || '(several methods)'}${frame}`,
    target ? `${target.owner}/${target.terminal}` : '-',
    'count' in intent ? counted(intent) : intent.decision_id,
    outcome ? `${outcome.status}${outcome.reason ? ` ${outcome.reason}` : ''}` : (reason ?? ''),
  ]
    .map(plain)
    .join('  ')
    .trimEnd();
}

/** With the id that all of them were told. */
function counted({ count, like, decision_id: shared }: WrittenCounted): string {
  return like === undefined ? `${count} as ${shared ?? '-'}` : `${count} more like ${like}`;
}

/** Who was not authenticated has no name: where the call came from is no subject. */
function who({ principal, actors = [], peer }: Deed['intent']): string {
  if (principal === undefined) return `(unauthenticated, from ${peer?.address ?? 'anywhere'})`;
  return actors.length === 0 ? principal.sub : `${principal.sub} acted by ${actors.join(' < ')}`;
}
