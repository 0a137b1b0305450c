// A key is typed and comes back: on a quiet machine, and while another terminal floods.
import { join } from 'node:path';
import { end, Skip } from '../support/bench.mjs';
import { killCheck } from '../support/killCheck.mjs';
import { interleave, rowOf } from '../support/measure.mjs';
import {
  measure as ask,
  client,
  newId,
  reach,
  startBareTerminals,
  startInPlaceOf,
  startServer,
} from '../support/server.mjs';
import { startSshd } from '../support/sshd.mjs';

/** What is typed comes back as it is, once, by the program and not by the terminal. */
const CAT = 'stty raw -echo; echo ready; exec cat';
/** As much as anybody takes, for ever; begins at a line. */
const FLOOD = 'echo ready; read go; exec cat /dev/zero';
const FOR_EVER = String(1e15);
/** Keys that the client types before those that it counts. */
const WARM_UP_KEYS = 200;
/** Keys after which V8 has compiled what each of them runs: a server that has been in use. */
const USED_KEYS = 20_000;
/** A part of a key's way and nothing else: see emptyEcho.mjs and bareTerminals.mjs. */
const PARTS = {
  direct: 'echo by an empty handler on grpc-js',
  relay: 'the same through one more process of Node.js',
  bare: 'the same with a terminal behind it',
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
  const typeAt = (target, keys, id = newId()) =>
    ask(bench, target, 'echo', { id, count: keys }, ['/bin/sh', '-c', CAT]);
  const type = (keys) => {
    const id = newId();
    seen.push({ id, bytes: 'ready\n'.length + WARM_UP_KEYS + keys });
    return typeAt(server, keys, id);
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
  const used = bench.size(USED_KEYS, count);
  await type(used);

  const { cert, key } = server;
  const empty = (...way) => startInPlaceOf(bench, server, 'emptyEcho.mjs', cert, key, ...way);
  const targets = {
    direct: await empty('direct'),
    relay: await empty('relay', join(bench.dir, 'relay')),
    bare: await startBareTerminals(bench, server),
  };
  const parts = {};
  for (const [name, target] of Object.entries(targets)) {
    await typeAt(target, used);
    parts[name] = () => typeAt(target, count);
  }
  rows(await interleave({ ...contestants, ...parts }, { rounds: bench.size(5, 1), seconds: 30 }), [
    { name: 'echo, p50', key: 'p50_us', atMost: 1.5 },
    { name: 'echo, p99', key: 'p99_us', atMost: 1 },
    ...Object.entries(PARTS).flatMap(([whose, name]) => [
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
  const besideFloodOf = async (target, echo) => {
    const id = newId();
    const flood = ['flood', ...reach(target), '-id', id, '-bytes', FOR_EVER, '-timeout', '120'];
    const result = await beside([...flood, '/bin/sh', '-c', FLOOD], echo);
    await ask(bench, target, 'kill', { id });
    return result;
  };
  const besides = {
    ours: () => besideFloodOf(server, contestants.ours),
    ...(ssh && {
      ssh: () =>
        beside(
          ['exec-flood', '-bytes', FOR_EVER, '-timeout', '120', ...ssh(FLOOD)],
          contestants.ssh,
        ),
    }),
    bare: () => besideFloodOf(targets.bare, parts.bare),
  };
  rows(await interleave(besides, { rounds: bench.size(5, 1), seconds: 20 }), [
    { name: 'echo while another terminal floods, p50', key: 'p50_us' },
    { name: 'echo while another terminal floods, p99', key: 'p99_us', atMost: 1 },
    { whose: 'bare', name: 'the same of two bare processes, p50', key: 'p50_us' },
    { whose: 'bare', name: 'the same of two bare processes, p99', key: 'p99_us' },
  ]);
  await killCheck(bench, server, 'echo', seen);
}
