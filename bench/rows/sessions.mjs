// Sessions: the first screen of a long log, and what one with a screen holds in memory.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from '../../dist/client/connect.js';
import { rowOf } from '../support/measure.mjs';
import { fillLog, makePastTerminal, NEEDLE } from '../support/pastTerminals.mjs';
import { OWNER, startServer } from '../support/server.mjs';

const KIB = 1024;
const MIB = 1024 * 1024;
/** Live terminals of one owner stay below their default limit. */
const PER_OWNER = 50;
const ROUNDS = 5;

export async function measure(bench) {
  await firstScreen(bench);
  await memory(bench);
}

async function firstScreen(bench) {
  const stateDir = join(bench.dir, 'screens');
  const bytes = bench.size(1024, 8) * MIB;
  // A screen is first once: each round has a terminal of its own, on the same server.
  const rounds = bench.size(2, 1);
  for (let at = 0; at < rounds; at += 1) {
    await fillLog(await makePastTerminal(stateDir, `long${at}`), bytes);
  }
  const server = await startServer(bench, { stateDir });
  const client = await clientOf(bench, server);
  const first = [];
  for (let at = 0; at < rounds; at += 1) {
    const terminal = { owner: OWNER, id: `long${at}` };
    first.push(await inMilliseconds(() => checked(client.sessions.getScreen({ terminal }))));
  }
  const terminal = { owner: OWNER, id: 'long0' };
  const again = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    again.push(await inMilliseconds(() => checked(client.sessions.getScreen({ terminal }))));
  }
  const lines = [await inMilliseconds(() => client.sessions.readScrollback({ terminal }))];
  const row = (name, ours, atMost) => bench.row(rowOf({ name, unit: 'ms', ours, atMost }));
  row('first screen of a terminal with 1 GiB of log', first, 1000);
  row('the same screen again', again);
  row('its first page of scrollback', lines);
  await server.end();
}

/** Each shell has printed 2,000 lines and shows a screen; shells themselves are not counted. */
async function memory(bench) {
  const byUid = process.getuid() === 0;
  const count = byUid ? bench.size(100, 4) : PER_OWNER;
  const server = await startServer(bench, { byUid, memory: true });
  const client = await clientOf(bench, server);
  const spawn = async (at) => {
    const owner = byUid ? String(20_000 + Math.floor(at / PER_OWNER)) : OWNER;
    const { session } = await client.sessions.spawn({ owner, agent: 'bench', type: 'shell' });
    const { terminal } = session;
    for await (const event of client.send({ terminal, text: 'seq 1 2000' })) void event;
    await client.sessions.getScreen({ terminal });
  };
  await spawn(0);
  await settle(bench);
  const before = await server.memory();
  for (let at = 1; at <= count; at += 1) await spawn(at);
  await settle(bench);
  const after = await server.memory();
  const perSession = (name) => (after[name] - before[name]) / count / KIB;
  bench.row(
    rowOf({
      name: 'memory per session with a screen and 2,000 lines',
      unit: 'KiB',
      ours: [perSession('resident')],
      note: `alive in heap and buffers: ${perSession('alive').toFixed(1)} KiB; over ${count}`,
    }),
  );
  await server.end();
}

async function clientOf(bench, server) {
  const token = await readFile(server.tokenFile, 'utf8');
  const ca = await readFile(server.ca);
  const client = connect({ address: server.address, ca, token: async () => token });
  bench.onEnd(() => client.close());
  return client;
}

async function checked(answer) {
  const { screen } = await answer;
  // It may be wrapped.
  const dense = (text) => text.replaceAll(/\s/g, '');
  if (!dense(screen).includes(dense(NEEDLE)))
    throw new Error('the screen does not show the end of the log');
}

async function inMilliseconds(work) {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
}

function settle(bench) {
  return new Promise((resolve) => setTimeout(resolve, bench.size(3000, 500)));
}
