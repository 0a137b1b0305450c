/** Cedar under V8 as a busy server has them: see `setFlagsFromString` in src/auth/cedarEngine.ts. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';

const run = promisify(execFile);
const PROGRAM = new URL('manyDecisions.mjs', import.meta.url).pathname;

it('goes on after code that waits for an answer of Cedar was dropped', async () => {
  // Scavenges at odd times are what drops it.
  const { stdout } = await run(process.execPath, ['--stress-scavenge=50', PROGRAM]);
  expect(stdout).toBe('3000\n');
});
