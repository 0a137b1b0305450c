/** `ctx context use`: makes a context the current one. */
import { Command } from 'commander';
import { action } from '../action.js';
import { contextFilePath, readContextFile, selectContext } from '../contextFile.js';

export function contextUseCommand(): Command {
  return new Command('use')
    .description('make a context the one that counts where none is named')
    .argument('<name>', 'context')
    .action(
      action(async (name: string) => {
        const path = contextFilePath(process.env);
        selectContext(path, await readContextFile(path), name);
        const { editContextFile } = await import('../contextEdit.js');
        await editContextFile(path, (document) => document.set('current', name));
      }),
    );
}
