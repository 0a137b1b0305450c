// A key is typed and comes back: on a quiet machine, and while another terminal floods.
import { end, Skip } from '../support/bench.mjs';
import { killCheck } from '../support/killCheck.mjs';
import { interleave, rowOf } from '../support/measure.mjs';
import { measure as ask, client, newId, reach, startServer } from '../support/server.mjs';
import { startSshd } from '../support/sshd.mjs';

/** What is typed comes back as it is, once, by the program and not by the terminal. */
const CAT = 'stty raw -echo; echo ready; exec cat';
/** As much as anybody takes, for ever; begins at a line. */
const FLOOD = 'echo ready; read go; exec cat /dev/zero';
const FOR_EVER = String(1e15);
/** Keys that the client types before those that it counts. */
const WARM_UP_KEYS = 200;

export async function measure(bench) {
  const binary = await client(bench);
  const server = await startServer(bench);
  const ssh = await startSshd(bench).catch((error) => {
    if (!(error instanceof Skip)) throw error;
    console.log(`echo: without a reference: ${error.message}`);
  });
  const count = bench.size(3000, 50);
  const seen = [];
  const contestants = {
    ours: () => {
      const id = newId();
      seen.push({ id, bytes: 'ready\n'.length + WARM_UP_KEYS + count });
      return ask(bench, server, 'echo', { id, count }, ['/bin/sh', '-c', CAT]);
    },
    ...(ssh && {
      ssh: () => bench.json(binary, ['exec-echo', '-count', String(count), ...ssh(CAT)]),
    }),
  };
  const rows = (results, names) => {
    for (const { name, key, atMost } of names) {
      const ours = results.ours.map((result) => result[key]);
      const reference = results.ssh?.map((result) => result[key]);
      const referenceName = reference && 'OpenSSH';
      const target = reference && { atMost };
      bench.row(rowOf({ name, unit: 'µs', ours, reference, referenceName, ...target }));
    }
  };

  rows(await interleave(contestants, { rounds: bench.size(5, 1), seconds: 25 }), [
    { name: 'echo, p50', key: 'p50_us', atMost: 1.5 },
    { name: 'echo, p99', key: 'p99_us', atMost: 1 },
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
