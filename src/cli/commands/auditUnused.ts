/** `ctx audit unused`: authority that nobody used, and that could be taken away. */
import { Command } from 'commander';
import { action } from '../action.js';
import {
  believableTrail,
  formatTime,
  parseTime,
  type TrailFlags,
  withTrailFlags,
} from '../auditTrail.js';
import { ExitCode } from '../exitCode.js';
import { writeLine } from '../output.js';
import { formatTable } from '../table.js';

interface Flags extends TrailFlags {
  readonly from?: string;
}

export function auditUnusedCommand(): Command {
  return withTrailFlags(
    new Command('unused').description('list grants, and actions of grants, that were never used'),
  )
    .option('--from <time>', 'count only from then on: RFC 3339, or seconds since 1970')
    .action(
      action(async (flags: Flags) => {
        const fromMs = flags.from === undefined ? 0 : parseTime('--from', flags.from);
        const { unused } = await import('../../audit/unused.js');
        const found = await unused(await believableTrail(flags), fromMs);
        if (flags.json) {
          await writeLine(JSON.stringify(found));
          return ExitCode.OK;
        }
        const rows = found.map((one) => [
          one.sub,
          one.grant,
          one.used.length === 0 ? 'all of it' : one.unused.join(' '),
          formatTime(one.last_seen_ms),
          one.iss,
        ]);
        const head = ['SUBJECT', 'GRANT', 'NEVER USED', 'LAST SEEN', 'ISSUER'];
        await writeLine(formatTable(head, rows));
        return ExitCode.OK;
      }),
    );
}
