// What something that does nothing costs: a terminal, a terminal with a long log, a watcher.
import { lineOf } from '../support/bench.mjs';
import { rowOf } from '../support/measure.mjs';
import { measure as ask, client, newId, OWNER, reach, startServer } from '../support/server.mjs';

const KIB = 1024;
const TARGET_KIB = 60;
/** The most live terminals of one owner. */
const PER_OWNER = 64;
/** Terminals that are there before the first look: with the first hundred the heaps grow to their size, once. */
const WARM_UP = 128;
/** The same where they are all one owner's, and of watchers. */
const FEW = 16;

export async function measure(bench) {
  // Many owners need root. Without it the figure comes from few terminals and is coarse.
  const byUid = process.getuid() === 0;
  const warmUp = byUid ? bench.size(WARM_UP, FEW) : FEW;
  const count = byUid ? bench.size(6, 1) * PER_OWNER : PER_OWNER - FEW - 1;
  const terminals = async (command) => {
    const server = await startServer(bench, { byUid, memory: true });
    const create = (id, first, number) => {
      const owners = byUid
        ? Array.from({ length: Math.ceil(number / PER_OWNER) }, (_, i) => first + i)
        : [OWNER];
      const flags = { id, owners: owners.join(','), count: number, parallel: 8 };
      return ask(bench, server, 'create', flags, command);
    };
    await create('warm', 20_000, warmUp);
    await settle(bench);
    const before = await server.memory();
    await create('idle', 20_100, count);
    await settle(bench);
    const after = await server.memory();
    await server.end();
    return perPiece(before, after, count);
  };
  const row = (name, { resident, alive }, number) => {
    const note = `alive in heap and buffers: ${alive.toFixed(1)} KiB; over ${number}`;
    bench.row(rowOf({ name, unit: 'KiB', ours: [resident], atMost: TARGET_KIB, note }));
  };
  const sleep = 'exec sleep 86400';
  row('memory per idle terminal', await terminals(['/bin/sh', '-c', sleep]), count);
  const printed = bench.size(1, 0.1) * KIB * KIB;
  const print = `head -c ${printed} /dev/zero; ${sleep}`;
  // What the flood of that output has left free in the heaps comes and goes; what is alive does not.
  const { resident, alive } = await terminals(['/bin/sh', '-c', print]);
  const note = `resident: ${resident.toFixed(1)} KiB; over ${count}`;
  const name = 'memory per idle terminal with 1 MiB of log, alive in heap and buffers';
  bench.row(rowOf({ name, unit: 'KiB', ours: [alive], atMost: TARGET_KIB, note }));

  const watchers = bench.size(1000, 50);
  const server = await startServer(bench, { memory: true });
  const id = newId();
  await ask(bench, server, 'create', { id }, ['/bin/sleep', '86400']);
  const hold = async (number) => {
    const flags = ['-id', `${id}0`, '-watchers', number, '-conns', 20, '-timeout', 120].map(String);
    const child = bench.start(await client(bench), ['hold', ...reach(server), ...flags]);
    await lineOf(child, child.stdout, (line) => line === 'held');
  };
  // Connections are not watchers: as many again come with the streams that count.
  await hold(FEW * 5);
  await settle(bench);
  const before = await server.memory();
  await hold(watchers);
  await settle(bench);
  row('memory per idle watcher', perPiece(before, await server.memory(), watchers), watchers);
}

function perPiece(before, after, count) {
  return {
    resident: (after.resident - before.resident) / count / KIB,
    alive: (after.alive - before.alive) / count / KIB,
  };
}

/** Output is read, logs are synced, what is idle is idle. */
function settle(bench) {
  return new Promise((resolve) => setTimeout(resolve, bench.size(3000, 500)));
}
