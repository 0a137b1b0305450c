/** `ctx supervise`: runs the supervisor of a state directory, or ends it. */
import { Command } from 'commander';
import { action } from '../action.js';
import { note } from '../output.js';
import { readVersion } from '../version.js';

interface Flags {
  readonly config?: string;
  readonly stateDir?: string;
  readonly listen?: string;
  readonly dev?: boolean;
  readonly allowSharedUid?: boolean;
  readonly stop?: boolean;
  readonly whenIdle?: boolean;
}

export function superviseCommand(): Command {
  return new Command('supervise')
    .description(
      'run the supervisor that owns the terminals of a state directory; "serve" starts one where none runs; SIGTERM ends it and its terminals',
    )
    .option('--config <file>', "the server's YAML configuration")
    .option('--state-dir <dir>', 'where terminals are kept; before the configuration')
    .option('--listen <host:port>', 'where the server listens; before the configuration')
    .option('--dev', 'as for "serve --dev"')
    .option('--allow-shared-uid', 'as for "serve --allow-shared-uid"')
    .option('--stop', 'end the running supervisor and its terminals')
    .option('--when-idle', 'with --stop: once no terminal lives, without waiting for that')
    .action(
      action(async (flags: Flags) => {
        const { runSupervise } = await import('../../app/supervise.js');
        await runSupervise({ ...flags, version: readVersion(), tell: note });
      }),
    );
}
