/** `ctx context list`: the contexts there are, and which one is current. */
import { Command, Option } from 'commander';
import { action } from '../action.js';
import { contextFilePath, readContextFile } from '../contextFile.js';
import { note, writeLine } from '../output.js';
import { formatTable } from '../table.js';

interface Flags {
  readonly quiet?: boolean;
  readonly json?: boolean;
}

export function contextListCommand(): Command {
  return new Command('list')
    .alias('ls')
    .description('list the contexts; * marks the current one')
    .addOption(new Option('-q, --quiet', 'print names only').conflicts('json'))
    .option('--json', 'print one context a line as JSON')
    .action(
      action(async (flags: Flags) => {
        const path = contextFilePath(process.env);
        const { current, contexts } = await readContextFile(path);
        const list = Object.entries(contexts).map(([name, { address, owner }]) => ({
          name,
          current: name === current,
          address,
          owner,
        }));
        if (flags.quiet || flags.json) {
          for (const one of list) await writeLine(flags.json ? JSON.stringify(one) : one.name);
          return;
        }
        if (list.length === 0) note(`there is none in ${path}; make one with "ctx context set"`);
        const rows = list.map((one) => [
          one.current ? '*' : '',
          one.name,
          one.address ?? '-',
          one.owner ?? '-',
        ]);
        await writeLine(formatTable(['', 'NAME', 'ADDRESS', 'OWNER'], rows));
      }),
    );
}
