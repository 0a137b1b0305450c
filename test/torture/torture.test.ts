import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const RUN = join(import.meta.dirname, 'run.mjs');

/** Seconds of blows; the whole takes some 30 s more on a quiet machine, and minutes on a busy one. */
const SECONDS = Number(process.env.TORTURE_SECONDS ?? 45);
const WHOLE_MS = (SECONDS + 480) * 1000;

it(
  'loses and doubles nothing while servers, supervisors and clients are killed, frozen and replaced',
  async () => {
    const run = spawn(process.execPath, [RUN, '--seconds', String(SECONDS)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let said = '';
    run.stdout.on('data', (chunk) => {
      said += chunk;
    });
    // With time for the end of what it has started.
    const late = setTimeout(() => run.kill('SIGTERM'), WHOLE_MS);
    const [code, signal] = await once(run, 'close');
    clearTimeout(late);
    process.stderr.write(said.replace(/^/gm, 'torture: '));
    if (code !== 0)
      throw new Error(`the torture run ended with ${code ?? signal}\n${inShort(said)}`);
  },
  WHOLE_MS + 60_000,
);

/** What was wrong first, and shortly: of a long message a log may keep no more than the beginning. */
function inShort(said: string): string {
  const lines = said.trimEnd().split('\n');
  const problems = lines.filter((line) => line.includes('PROBLEM'));
  const told = problems.slice(0, 8).map((line) => line.replace(/^.*PROBLEM /, '').slice(0, 300));
  return [...told, `(${problems.length} problems in all)`, ...lines.slice(-1)].join('\n');
}
