/** `ctx audit why`: on what grounds one decision was taken. */
import { Command } from 'commander';
import type { Reasons } from '../../audit/why.js';
import { action } from '../action.js';
import { believableTrail, formatTime, type TrailFlags, withTrailFlags } from '../auditTrail.js';
import { ExitCode } from '../exitCode.js';
import { note, writeLine } from '../output.js';
import { formatRecord } from '../table.js';

export function auditWhyCommand(): Command {
  return withTrailFlags(
    new Command('why')
      .description(
        'explain a decision: who asked, which grant and policies decided, what came of it',
      )
      .argument('<decision-id>', 'as the error, or the answer, told it'),
  ).action(
    action(async (decisionId: string, flags: TrailFlags) => {
      const { why } = await import('../../audit/why.js');
      const dir = await believableTrail(flags);
      const reasons = await why(dir, decisionId);
      if (reasons === undefined) {
        note(`no decision ${decisionId} is on record in ${dir}`);
        return ExitCode.FAILURE;
      }
      await writeLine(flags.json ? JSON.stringify(reasons) : toText(reasons));
      return ExitCode.OK;
    }),
  );
}

function toText({ intent, outcome, counted, token, grants, policy }: Reasons): string {
  if (intent === undefined) return countText(counted);
  const { principal, target, considered = [], reason } = intent;
  const grant = intent.grant === undefined ? undefined : grants[intent.grant];
  return formatRecord([
    ['decision', reason === undefined ? intent.decision : `${intent.decision} (${reason})`],
    ['time', formatTime(intent.time_ms)],
    ['method', intent.frame ? `${intent.rpc} (${intent.frame})` : intent.rpc],
    ['action', intent.action],
    ['terminal', target && Object.values(target).join('/')],
    ['subject', principal?.sub],
    ['actors', intent.actors?.join(' < ')],
    ['client', principal?.client_id],
    ['issuer', principal?.iss],
    ['token', principal?.jti],
    ['token expires', token && formatTime(token.exp * 1000)],
    ['descends from', intent.lineage?.map(({ jti }) => jti).join(' > ')],
    ['peer', intent.peer?.address],
    ['granted by', intent.grant],
    ['grant', grant === undefined ? undefined : JSON.stringify(grant)],
    ...considered.map((one) => ['not by', `${one.grant}: ${one.why}`] as const),
    ['policies', intent.policy?.ids.join(', ')],
    ['policy set', intent.policy && `${intent.policy.hash}${policy ? '' : ' (not on record)'}`],
    ['outcome', outcome && [outcome.status, outcome.reason].filter(Boolean).join(' ')],
    ['events', eventsOf(outcome)],
    [
      'alike',
      counted &&
        `${counted.count} more until ${formatTime(counted.last_ms)}, told the same decision id`,
    ],
  ]);
}

/** Of many different denials at once, no more is known than why, when and how many. */
function countText(counted: Reasons['counted']): string {
  if (counted === undefined) return '';
  const { decision, reason, count, first_ms: firstMs, last_ms: lastMs } = counted;
  return formatRecord([
    ['decision', `${decision} (${reason})`],
    ['time', `${formatTime(firstMs)} to ${formatTime(lastMs)}`],
    ['alike', `${count} in all, of several callers; there were too many at once to record each`],
  ]);
}

function eventsOf(outcome: Reasons['outcome']): string | undefined {
  if (outcome?.first_seq === undefined) return undefined;
  return `${outcome.first_seq}-${outcome.last_seq ?? outcome.first_seq}`;
}
