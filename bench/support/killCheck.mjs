// No speed is bought by loss: server and supervisor are killed, and what a client had seen must be in
// the logs.

import { existsSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { resourceDir } from '../../dist/store/paths.js';
import { LogReader } from '../../dist/store/reader/logReader.js';
import { rowOf } from './measure.mjs';
import { OWNER } from './server.mjs';

/**
 * Kills, without a word, and adds a row of how much is missing.
 * @param seen what a client saw of terminals: `{id, bytes}` of output and, with `exit`, the exit
 */
export async function killCheck(bench, server, name, seen) {
  const pids = await server.pids();
  for (const pid of pids) process.kill(pid, 'SIGKILL');
  for (let waited = 0; pids.some((pid) => existsSync(`/proc/${pid}`)); waited += 20) {
    if (waited > 10_000) throw new Error('what was killed does not end');
    await setTimeout(20);
  }
  let lost = 0;
  for (const terminal of seen) lost += await missing(server, terminal);
  bench.row(
    rowOf({
      name: `${name}, then kill -9 of server and supervisor: bytes and exits seen and not in the log`,
      unit: '',
      ours: [lost],
      atMost: 0,
      note: `over ${seen.length} terminals`,
    }),
  );
}

async function missing({ stateDir }, { id, bytes = 0, exit = false }) {
  const dir = resourceDir(stateDir, { owner: OWNER, agent: 'bench', session: 'default', id });
  const log = await LogReader.open(dir);
  let found = 0;
  let exited = false;
  try {
    for await (const events of log.read(1, Number.MAX_SAFE_INTEGER)) {
      for (const event of events) {
        if (event.type === 'pty.output') found += event.data.length;
        else exited = true;
      }
    }
  } finally {
    await log.close();
  }
  return Math.max(0, bytes - found) + (exit && !exited ? 1 : 0);
}
