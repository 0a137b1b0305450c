// A key is typed and comes back: on a quiet machine, and while another terminal floods.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { end, lineOf, Skip } from '../support/bench.mjs';
import { killCheck } from '../support/killCheck.mjs';
import { interleave, rowOf } from '../support/measure.mjs';
import { measure as ask, client, newId, reach, startServer } from '../support/server.mjs';
import { startSshd } from '../support/sshd.mjs';

const EMPTY = fileURLToPath(new URL('../support/emptyEcho.mjs', import.meta.url));

/** What is typed comes back as it is, once, by the program and not by the terminal. */
const CAT = 'stty raw -echo; echo ready; exec cat';
/** As much as anybody takes, for ever; begins at a line. */
const FLOOD = 'echo ready; read go; exec cat /dev/zero';
const FOR_EVER = String(1e15);
/** Keys that the client types before those that it counts. */
const WARM_UP_KEYS = 200;
/** Keys after which V8 has compiled what each of them runs: a server that has been in use. */
const USED_KEYS = 20_000;
/** What stands between the client and the key's way back, and nothing else: see emptyEcho.mjs. */
const FLOORS = {
  direct: 'echo by an empty handler on grpc-js',
  relay: 'the same through one more process of Node.js',
};

export async function measure(bench) {
  const binary = await client(bench);
  const server = await startServer(bench);
  const ssh = await startSshd(bench).catch((error) => {
    if (!(error instanceof Skip)) throw error;
    console.log(`echo: without a reference: ${error.message}`);
  });
  const count = bench.size(3000, 50);
  const seen = [];
  const type = (keys) => {
    const id = newId();
    seen.push({ id, bytes: 'ready\n'.length + WARM_UP_KEYS + keys });
    return ask(bench, server, 'echo', { id, count: keys }, ['/bin/sh', '-c', CAT]);
  };
  const contestants = {
    ours: () => type(count),
    ...(ssh && {
      ssh: () => bench.json(binary, ['exec-echo', '-count', String(count), ...ssh(CAT)]),
    }),
  };
  const rows = (results, names) => {
    for (const { name, key, atMost, whose = 'ours' } of names) {
      const ours = results[whose].map((result) => result[key]);
      const reference = results.ssh?.map((result) => result[key]);
      const referenceName = reference && 'OpenSSH';
      const target = reference && { atMost };
      bench.row(rowOf({ name, unit: 'µs', ours, reference, referenceName, ...target }));
    }
  };

  const fresh = await type(count);
  for (const [name, key] of [
    ['echo of a server just started, p50', 'p50_us'],
    ['echo of a server just started, p99', 'p99_us'],
  ]) {
    bench.row(rowOf({ name, unit: 'µs', ours: [fresh[key]] }));
  }
  await type(bench.size(USED_KEYS, count));

  const floors = {};
  for (const way of Object.keys(FLOORS)) {
    const target = await emptyEcho(bench, server, way);
    floors[way] = () => ask(bench, target, 'echo', { id: newId(), count }, ['none']);
    await floors[way]();
  }
  rows(await interleave({ ...contestants, ...floors }, { rounds: bench.size(5, 1), seconds: 30 }), [
    { name: 'echo, p50', key: 'p50_us', atMost: 1.5 },
    { name: 'echo, p99', key: 'p99_us', atMost: 1 },
    ...Object.entries(FLOORS).flatMap(([whose, name]) => [
      { whose, name: `${name}, p50`, key: 'p50_us' },
      { whose, name: `${name}, p99`, key: 'p99_us' },
    ]),
  ]);

  // Each contestant is measured while its own server has the flood, and its own client takes it.
  const beside = async (flood, echo) => {
    const child = bench.start(binary, flood);
    child.stdout.resume();
    await new Promise((resolve) => setTimeout(resolve, 1500));
    if (child.exitCode !== null) throw new Error(`the flood ended: ${child.said()}`);
    try {
      return await echo();
    } finally {
      await end(child);
    }
  };
  const floodOurs = () => [
    ...['flood', ...reach(server), '-id', newId(), '-bytes', FOR_EVER, '-timeout', '120'],
    ...['/bin/sh', '-c', FLOOD],
  ];
  const besides = {
    ours: async () => {
      const flood = floodOurs();
      const id = flood[flood.indexOf('-id') + 1];
      const result = await beside(flood, contestants.ours);
      await ask(bench, server, 'kill', { id });
      return result;
    },
    ...(ssh && {
      ssh: () =>
        beside(
          ['exec-flood', '-bytes', FOR_EVER, '-timeout', '120', ...ssh(FLOOD)],
          contestants.ssh,
        ),
    }),
  };
  rows(await interleave(besides, { rounds: bench.size(5, 1), seconds: 35 }), [
    { name: 'echo while another terminal floods, p50', key: 'p50_us' },
    { name: 'echo while another terminal floods, p99', key: 'p99_us', atMost: 1 },
  ]);
  await killCheck(bench, server, 'echo', seen);
}

/** A server that does nothing but give keys back, with the certificate and the token of `server`. */
async function emptyEcho(bench, server, way) {
  const { cert, key } = server;
  const socket = join(bench.dir, 'relay');
  const child = bench.start(process.execPath, [EMPTY, cert, key, way, socket], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return { ...server, address: await lineOf(child, child.stdout, () => true) };
}
