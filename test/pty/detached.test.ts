import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';

const RUNS = fileURLToPath(new URL('./detachedRuns.mjs', import.meta.url));
const BUILT = fileURLToPath(new URL('../../dist/pty/pty.js', import.meta.url));

/** For a machine that is busy with other things. */
const LONG_MS = 120_000;

/** Forks `runs` PTYs, one after another, in a process that leads a session and has no terminal. */
async function runDetached(runs: number, script: string) {
  if (!existsSync(BUILT)) throw new Error('dist/ is not built: run `npm run build` first');
  const child = spawn('setsid', ['--wait', process.execPath, RUNS, String(runs), script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  const end = await new Promise((resolve) => {
    child.on('close', (code, signal) => resolve({ code, signal }));
  });
  expect(end).toEqual({ code: 0, signal: null });
  return JSON.parse(text);
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

const NUMBERS = Array.from({ length: 50_000 }, (_, index) => `${index + 1}\r\n`).join('');

describe('PTYs of a session leader without a terminal', () => {
  it(
    'lose nothing in 200 runs, and no hang-up of one reaches their owner',
    async () => {
      expect(await runDetached(200, 'exec seq 1 50000')).toEqual({
        hashes: [hash(NUMBERS)],
        exits: [{ exitCode: 0, drained: true }],
        leadsSession: true,
        terminal: 0,
      });
    },
    LONG_MS,
  );

  it('lose nothing when the reader is paused at the exit of the child', async () => {
    expect(await runDetached(20, ': pause; printf "%06000d" 1; exit 3')).toEqual({
      hashes: [hash('1'.padStart(6000, '0'))],
      exits: [{ exitCode: 3, drained: true }],
      leadsSession: true,
      terminal: 0,
    });
  });

  it('lose nothing when a background process keeps the terminal open', async () => {
    expect(await runDetached(3, 'trap "" HUP; sleep 2 & seq 1 50000; kill -KILL $$')).toEqual({
      hashes: [hash(NUMBERS)],
      exits: [{ exitCode: 137, signal: 'SIGKILL', drained: false }],
      leadsSession: true,
      terminal: 0,
    });
  });
});
