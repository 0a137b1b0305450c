/** `ctx policy test`: runs the table tests of a policy directory, and sees that no forbid lacks one. */
import { Command } from 'commander';
import { counted } from '../../core/counted.js';
import { action } from '../action.js';
import { ExitCode } from '../exitCode.js';
import { writeLine } from '../output.js';

interface Flags {
  readonly json?: boolean;
}

export function policyTestCommand(): Command {
  return new Command('test')
    .description('run the table tests in DIR/tests; each forbid must be missed by one of them')
    .argument('[dir]', 'directory of policies (default: those that come with the program)')
    .option('--json', 'print one JSON document')
    .action(
      action(async (given: string | undefined, flags: Flags) => {
        const [{ setOf }, { failuresOf, readTables, unguardedForbids }] = await Promise.all([
          import('../policyDir.js'),
          import('../../auth/cedarTable.js'),
        ]);
        const { dir, set } = await setOf(given);
        const cases = await readTables(dir);
        const failures = failuresOf(set, cases);
        // Only a table that holds can miss anything.
        const unguarded = failures.length > 0 ? [] : unguardedForbids(set, cases);
        const isGood = failures.length === 0 && unguarded.length === 0;
        if (flags.json) {
          const failed = failures.map(({ case: { file, name, decision, policies }, ...got }) => ({
            file,
            name,
            expected: { decision, policies },
            got,
          }));
          const document = { dir, ok: isGood, cases: cases.length, failures: failed, unguarded };
          await writeLine(JSON.stringify(document));
        } else {
          for (const { case: expected, decision, policies, errors } of failures) {
            await writeLine(`FAIL  ${expected.file}: ${expected.name}`);
            await writeLine(`      expected  ${decided(expected)}`);
            await writeLine(`      got       ${decided({ decision, policies })}`);
            for (const error of errors) await writeLine(`      error     ${error}`);
          }
          for (const id of unguarded) await writeLine(`FAIL  no case misses ${id} when it is gone`);
          await writeLine(
            `${cases.length - failures.length} of ${counted(cases.length, 'case')} hold`,
          );
        }
        return isGood ? ExitCode.OK : ExitCode.FAILURE;
      }),
    );
}

function decided({
  decision,
  policies,
}: {
  decision: string;
  policies: readonly string[];
}): string {
  return `${decision} by ${policies.length === 0 ? 'no policy' : policies.join(', ')}`;
}
