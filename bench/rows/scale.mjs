// A thousand idle terminals and a thousand idle watchers, and how memory and latency grow up to there.
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { lineOf } from '../support/bench.mjs';
import { rowOf } from '../support/measure.mjs';
import { measure as ask, client, newId, OWNER, reach, startServer } from '../support/server.mjs';
import { writeSeries } from '../support/table.mjs';

const NODE_PTY = fileURLToPath(new URL('../support/nodePty.mjs', import.meta.url));
const KIB = 1024;
const IDLE = ['/bin/sleep', '86400'];
/** Terminals of one owner: half of the most that are allowed. */
const PER_OWNER = 32;
/** Terminals or watchers that are there before the first look, so that what is made once is made. */
const WARM_UP = 16;
/** Connections that watchers are spread over. */
const CONNECTIONS = 20;
const CALLS = 100;
const SECONDS = 600;

export async function measure(bench) {
  // Many owners need root.
  const byUid = process.getuid() === 0;
  const most = byUid ? bench.size(1000, 30) : PER_OWNER;
  const steps = [1, 10, 100, 300, 1000].filter((step) => step < most).concat(most);
  const owners = byUid
    ? Array.from({ length: Math.ceil(most / PER_OWNER) }, (_, i) => 20_100 + i).join(',')
    : OWNER;
  const server = await startServer(bench, { byUid, memory: true });
  const id = newId();
  const flags = { owners, id, timeout: SECONDS };
  await ask(bench, server, 'create', { ...flags, id: 'warm', count: WARM_UP }, IDLE);

  const terminals = [];
  for (const [i, count] of steps.entries()) {
    const first = steps[i - 1] ?? 0;
    const created = await ask(
      bench,
      server,
      'create',
      { ...flags, first, count: count - first },
      IDLE,
    );
    const page = Math.min(100, count);
    const listed = await ask(bench, server, 'list', {
      page,
      count: bench.size(CALLS, 10),
      timeout: SECONDS,
    });
    terminals.push({
      count,
      ...(await look(bench, server)),
      created,
      listed,
    });
  }
  const nodePty = await bench.json(process.execPath, [
    ...['--expose-gc', NODE_PTY, 'hold', steps.join(','), ...IDLE],
  ]);
  const watchers = await grow(bench, server, steps, { owner: owners.split(',')[0], id: `${id}0` });
  const apart = await grow(bench, server, steps, { ...flags, spread: most });
  const calls = { ...flags, spread: most, count: bench.size(CALLS * 10, 10) };
  const got = await ask(bench, server, 'call', calls);
  await writeSeries('scale', { terminals, nodePty, watchers, watchersApart: apart, got });

  const memory = (name, series, rest) => {
    const { server, supervisor, over } = oneMore(series);
    const parts = [server, supervisor].map((kib) => kib.toFixed(1));
    const note = `server ${parts[0]}, supervisor ${parts[1]} KiB; ${over}`;
    bench.row(rowOf({ name, unit: 'KiB', ours: [server + supervisor], note, ...rest }));
  };
  memory('an idle terminal among a thousand', terminals, {
    reference: [slope(nodePty, ({ held }) => held)],
    referenceName: 'node-pty alone',
  });
  memory('an idle watcher, a thousand of one terminal', watchers);
  memory('an idle watcher, a thousand of as many terminals', apart);
  for (const point of ['p50', 'p99']) {
    const row = (name, samples, rest) =>
      bench.row(
        rowOf({ name: `${name}, ${point}`, unit: 'µs', ours: [samples[`${point}_us`]], ...rest }),
      );
    row('create among a thousand', terminals.at(-1).created, {
      reference: [nodePty.at(-1).created[`${point}_us`]],
      referenceName: 'node-pty alone',
    });
    row('list of 100 out of a thousand', terminals.at(-1).listed);
    row('get among a thousand, all watched', got);
  }
}

/** Watchers up to each of the counts in turn; they stay until the row ends. */
async function grow(bench, server, steps, target) {
  // Connections are not watchers: they are there, in use, before the first look.
  const flags = { ...target, watchers: CONNECTIONS, conns: CONNECTIONS, timeout: SECONDS };
  const args = Object.entries(flags).flatMap(([name, value]) => [`-${name}`, String(value)]);
  const child = bench.start(await client(bench), ['hold', ...reach(server), ...args]);
  const held = () => lineOf(child, child.stdout, (line) => line === 'held');
  await held();
  const series = [];
  for (const [i, count] of steps.entries()) {
    child.stdin.write(`${count - (steps[i - 1] ?? 0)}\n`);
    await held();
    series.push({ count, ...(await look(bench, server)) });
  }
  return series;
}

/** Once output is read and logs are synced. */
async function look(bench, server) {
  await setTimeout(bench.size(3000, 500));
  return server.processes();
}

/** KiB of the server and of the supervisor for one more, and between which counts that was seen. */
function oneMore(series) {
  const { from, to } = ends(series);
  const kib = (process) => slope(series, (point) => point[process].held);
  const over = `from ${from.count} to ${to.count}`;
  return { server: kib('server'), supervisor: kib('supervisor'), over };
}

/** KiB that a value has grown by for each one more. */
function slope(series, value) {
  const { from, to } = ends(series);
  return (value(to) - value(from)) / (to.count - from.count) / KIB;
}

/** The first hundred are left out: with them a heap grows to its working size, once. */
function ends(series) {
  return { from: series.find(({ count }) => count >= 100) ?? series[0], to: series.at(-1) };
}
