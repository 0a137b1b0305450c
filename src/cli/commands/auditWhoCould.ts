/** `ctx audit who-could`: who held the authority to do something at some time. */
import { Command } from 'commander';
import type { Holder, WhoCouldAnswer } from '../../audit/whoCould.js';
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
import { formatTable } from '../table.js';

interface Flags extends TrailFlags {
  readonly at: string;
  readonly owner?: string;
  readonly agent?: string;
  readonly session?: string;
}

export function auditWhoCouldCommand(): Command {
  return withTrailFlags(
    new Command('who-could')
      .description('list tokens that could do something to a terminal at some time')
      .argument('<action>', 'such as terminal.write')
      .argument('<id>', 'of the terminal'),
  )
    .option('--at <time>', 'RFC 3339, or seconds since 1970', 'now')
    .option('--owner <owner>', 'of the terminal, where several had one of that id')
    .option('--agent <agent>', 'of the terminal, where the trail does not know it')
    .option('--session <session>', 'of the terminal, where the trail does not know it')
    .action(
      action(async (wanted: string, id: string, flags: Flags) => {
        const wantedAction = parseAction(wanted);
        const { at, owner, agent, session } = flags;
        const atMs = parseTime('--at', at);
        const [{ whoCould }, { openArchivedPolicy }] = await Promise.all([
          import('../../audit/whoCould.js'),
          import('../archivedPolicy.js'),
        ]);
        const answer = await whoCould(await believableTrail(flags), {
          action: wantedAction,
          id,
          atMs,
          ...(owner !== undefined && { owner }),
          ...(agent !== undefined && { agent }),
          ...(session !== undefined && { session }),
          openPolicy: openArchivedPolicy,
        });
        await writeLine(flags.json ? JSON.stringify(answer) : toText(answer));
        if (answer.policy === undefined)
          note('no policies are on record for then; grants alone count');
        note('tokens that no server was ever shown are not in the trail');
        return ExitCode.OK;
      }),
    );
}

function toText({ could, prevented }: WhoCouldAnswer): string {
  const row = (holder: Holder) => [
    holder.sub,
    holder.actors.join(' < '),
    holder.jti,
    holder.grant,
    formatTime(holder.exp * 1000),
    holder.policies.join(' '),
    holder.prevented === undefined ? 'could' : `no: ${holder.prevented}`,
  ];
  const head = ['SUBJECT', 'ACTORS', 'TOKEN', 'GRANT', 'EXPIRES', 'POLICIES', 'COULD'];
  return formatTable(head, [...could, ...prevented].map(row));
}
