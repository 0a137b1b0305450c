/** `ctx doctor`: looks for what would keep a server or this program from working. */
import { Command } from 'commander';
import type { Finding } from '../../app/doctor/finding.js';
import { action } from '../action.js';
import { type ConnectionFlags, withConnectionFlags } from '../connection.js';
import { ExitCode } from '../exitCode.js';
import { writeLine } from '../output.js';
import { readVersion } from '../version.js';

interface Flags extends ConnectionFlags {
  readonly config?: string;
  readonly stateDir?: string;
  readonly json?: boolean;
}

export function doctorCommand(): Command {
  return withConnectionFlags(
    new Command('doctor')
      .description('check this host, the server and the token; changes nothing, fails if one does')
      .option('--config <file>', "the server's YAML configuration")
      .option('--state-dir <dir>', 'state directory of the server'),
  )
    .option('--json', 'print one finding a line as JSON')
    .action(
      action(async (flags: Flags) => {
        const [{ hostFindings }, { serverFindings }, { Columns }] = await Promise.all([
          import('../../app/doctor/hostFindings.js'),
          import('../serverFindings.js'),
          import('../table.js'),
        ]);
        const ofHost = await hostFindings({ ...flags, now: Date.now() });
        const findings = [...ofHost, ...(await serverFindings(flags, readVersion(), ofHost))];
        const columns = new Columns(['warn', '']);
        columns.fit(findings.flatMap(rows));
        for (const finding of findings) {
          if (flags.json) {
            await writeLine(JSON.stringify(finding));
            continue;
          }
          for (const row of rows(finding)) await writeLine(columns.line(row));
        }
        return findings.some(({ level }) => level === 'fail') ? ExitCode.FAILURE : ExitCode.OK;
      }),
    );
}

function rows({ level, check, found, advice }: Finding): string[][] {
  const [first = '', ...more] = found.split('\n');
  return [
    [level, check, first],
    ...more.map((line) => ['', '', line]),
    ...(advice === undefined ? [] : [['', '', `→ ${advice}`]]),
  ];
}
