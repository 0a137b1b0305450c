/** `ctx audit verify`: whether the trail is as it was written. */
import { Command } from 'commander';
import type { Verdict } from '../../audit/chainCheck.js';
import { action, describeFailure } from '../action.js';
import { noTrail, type TrailFlags, trailDir, withTrailFlags } from '../auditTrail.js';
import { note, writeLine } from '../output.js';
import { formatRecord } from '../table.js';

interface Flags extends TrailFlags {
  readonly head?: string;
  readonly key?: string;
}

/** A trail that cannot be read cannot be vouched for either. */
const EXIT_CODES = { sound: 0, tampered: 1, incomplete: 2 } as const;

export function auditVerifyCommand(): Command {
  return withTrailFlags(
    new Command('verify').description(
      'check the trail: exit code 0 sound, 1 tampered with, 2 incomplete; names the first bad record',
    ),
  )
    .option('--head <file|line>', 'checkpoint kept elsewhere: HEAD, a line of the log, or its file')
    .option('--key <file>', 'public key kept elsewhere (default: checkpoint.pub of the trail)')
    .action(
      action(async (flags: Flags) => {
        try {
          const [dir, { verifyTrail }, { readKeptHead }] = await Promise.all([
            trailDir(flags),
            import('../../audit/verify.js'),
            import('../../audit/keptHead.js'),
          ]);
          const head = flags.head === undefined ? undefined : await readKeptHead(flags.head);
          const verdict = await verifyTrail(dir, {
            ...(head !== undefined && { head }),
            ...(flags.key !== undefined && { keyFile: flags.key }),
          });
          const told = { dir, ...verdict };
          await writeLine(flags.json ? JSON.stringify(told) : toText(told));
          if (verdict.records === 0) note(noTrail(dir));
          return EXIT_CODES[verdict.state];
        } catch (error) {
          note(describeFailure(error));
          return EXIT_CODES.incomplete;
        }
      }),
    );
}

function toText(verdict: Verdict & { readonly dir: string }): string {
  const { dir, state, firstBad, notes, records, firstSeq, lastSeq, signedThrough, key } = verdict;
  return formatRecord([
    ['trail', state],
    ['directory', dir],
    ['first bad record', firstBad && `${firstBad.seq ?? '?'} (${firstBad.file}:${firstBad.line})`],
    ['why', firstBad?.why],
    ['records', firstSeq === undefined ? `${records}` : `${records} (${firstSeq}-${lastSeq})`],
    ['signed through', signedThrough?.toString()],
    ['key', key],
    ...notes.map((text) => ['note', text] as const),
  ]);
}
