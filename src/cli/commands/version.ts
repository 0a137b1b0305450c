/** `ctx version`: the version of this program. */
import { Command } from 'commander';
import { action } from '../action.js';
import { writeLine } from '../output.js';
import { readVersion } from '../version.js';

export function versionCommand(): Command {
  return new Command('version')
    .description('print the version')
    .option('--json', 'print it as JSON')
    .action(
      action(async (flags: { readonly json?: boolean }) => {
        const version = readVersion();
        await writeLine(flags.json ? JSON.stringify({ version, node: process.version }) : version);
      }),
    );
}
