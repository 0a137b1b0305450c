/** `ctx context show`: the settings of one context. */
import { Command } from 'commander';
import { action } from '../action.js';
import { contextFilePath, contextKey, readContextFile, selectContext } from '../contextFile.js';
import { UsageError } from '../exitCode.js';
import { writeLine } from '../output.js';
import { formatRecord } from '../table.js';

interface Flags {
  readonly json?: boolean;
}

export function contextShowCommand(): Command {
  return new Command('show')
    .description('print the settings of a context; a token in it is not shown')
    .argument('[name]', 'context (default: the current one)')
    .option('--json', 'print them as JSON')
    .action(
      action(async (given: string | undefined, flags: Flags) => {
        const path = contextFilePath(process.env);
        const file = await readContextFile(path);
        const name = given ?? file.current;
        if (name === undefined) {
          throw new UsageError(`no context is current: choose one with "ctx context use NAME"`);
        }
        const settings = Object.entries(selectContext(path, file, name)).map(
          ([setting, value]) =>
            [contextKey(setting), setting === 'token' ? '(not shown)' : value] as const,
        );
        await writeLine(
          flags.json
            ? JSON.stringify({ name, ...Object.fromEntries(settings) })
            : formatRecord([['name', name], ...settings]),
        );
      }),
    );
}
