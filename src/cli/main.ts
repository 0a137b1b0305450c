#!/usr/bin/env node
/** Entry of `ctx`: parses, runs one command, and leaves with its exit code. */
import { CommanderError } from 'commander';
import { reportFailure } from './action.js';
import { ExitCode } from './exitCode.js';
import { flushOutput, watchOutput } from './output.js';
import { program } from './program.js';

watchOutput();
try {
  await program().parseAsync(process.argv);
} catch (error) {
  // commander has said what is wrong itself; help and version are no failures.
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? ExitCode.OK : ExitCode.USAGE;
  } else {
    process.exitCode = reportFailure(error);
  }
}
try {
  await flushOutput();
} catch (error) {
  process.exitCode = reportFailure(error);
}
process.exit();
