/** `ctx context set`: makes a context, or gives one other settings. */
import { resolve } from 'node:path';
import { Command } from 'commander';
import { action } from '../action.js';
import { type ConnectionFlags, withConnectionFlags } from '../connection.js';
import { contextFilePath, contextKey, PATH_SETTINGS } from '../contextFile.js';
import { UsageError } from '../exitCode.js';
import { givenSettings } from '../settings.js';

export function contextSetCommand(): Command {
  return withConnectionFlags(
    new Command('set')
      .description(
        'make a context from the connection flags, or change those of one; the first is the current one',
      )
      .argument('<name>', 'context'),
  ).action(
    action(async (name: string, flags: ConnectionFlags) => {
      const settings = givenSettings(flags);
      if (settings.length === 0) {
        throw new UsageError(
          'nothing is to be set: give --address, --ca, --token-file or the like',
        );
      }
      const { editContextFile } = await import('../contextEdit.js');
      await editContextFile(contextFilePath(process.env), (document) => {
        for (const [setting, value] of settings) {
          const absolute = PATH_SETTINGS.has(setting) ? resolve(value) : value;
          document.setIn(['contexts', name, contextKey(setting)], absolute);
        }
        if (!document.has('current')) document.set('current', name);
      });
    }),
  );
}
