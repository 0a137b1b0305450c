/** `ctx serve`: runs the server until it is told to end. */
import { Command, Option } from 'commander';
import { action } from '../action.js';
import { note } from '../output.js';
import { readVersion } from '../version.js';

interface Flags {
  readonly config?: string;
  readonly stateDir?: string;
  readonly listen?: string;
  readonly dev?: boolean;
  readonly allowSharedUid?: boolean;
  readonly supervisor?: 'detached' | 'external' | 'in-process';
}

export function serveCommand(): Command {
  return new Command('serve')
    .description('run the server; SIGTERM drains it, a second one ends it at once')
    .option('--config <file>', 'YAML configuration')
    .option('--state-dir <dir>', 'where terminals are kept; before the configuration')
    .option('--listen <host:port>', 'where to listen; before the configuration')
    .option('--dev', 'for development: makes its own keys and token, on loopback only')
    .option(
      '--allow-shared-uid',
      "let terminals run as the server's own user, beyond loopback and for several owners",
    )
    .addOption(
      new Option(
        '--supervisor <kind>',
        'detached: terminals outlive this server (default); external: likewise, and somebody else starts the supervisor; in-process: they end with it',
      ).choices(['detached', 'external', 'in-process']),
    )
    .action(
      action(async (flags: Flags) => {
        const { runServe } = await import('../../app/runServe.js');
        await runServe({ ...flags, version: readVersion(), tell: note });
      }),
    );
}
