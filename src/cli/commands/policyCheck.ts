/** `ctx policy check`: whether a server would take the policies of a directory. */
import { Command } from 'commander';
import { counted } from '../../core/counted.js';
import { action } from '../action.js';
import { ExitCode } from '../exitCode.js';
import { writeLine } from '../output.js';

interface Flags {
  readonly json?: boolean;
}

export function policyCheckCommand(): Command {
  return new Command('check')
    .description('validate policies as a server does before it takes them')
    .argument('[dir]', 'directory of policies (default: those that come with the program)')
    .option('--json', 'print one JSON document')
    .action(
      action(async (given: string | undefined, flags: Flags) => {
        const { candidateOf, problemLine } = await import('../policyDir.js');
        const { dir, candidate } = await candidateOf(given);
        const problems = candidate.ok ? [] : candidate.problems;
        const warnings = candidate.ok ? candidate.warnings : [];
        if (flags.json) {
          const found = candidate.ok && {
            hash: candidate.set.hash,
            policies: candidate.set.policies.map(({ id, effect }) => ({ id, effect })),
          };
          await writeLine(JSON.stringify({ dir, ok: candidate.ok, ...found, problems, warnings }));
        } else {
          for (const problem of problems) await writeLine(`error    ${problemLine(problem)}`);
          for (const warning of warnings) await writeLine(`warning  ${problemLine(warning)}`);
          if (candidate.ok) {
            const { policies, hash } = candidate.set;
            await writeLine(
              `ok       ${counted(policies.length, 'policy', 'policies')}, hash ${hash}`,
            );
          }
        }
        return candidate.ok ? ExitCode.OK : ExitCode.FAILURE;
      }),
    );
}
