// How cost grows: with the watchers of one terminal, with the length of a log, with idle terminals and
// watchers. Draws the curves for docs/performance.md. Not part of the bench proper: `--growth` runs it.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { floodText } from '../support/floodText.mjs';
import { fillLog, makePastTerminal, NEEDLE_PATTERN } from '../support/pastTerminals.mjs';
import { writePlot } from '../support/plot.mjs';
import { measure as ask, newId, startServer } from '../support/server.mjs';
import { writeSeries } from '../support/table.mjs';
import { measure as measureScale } from './scale.mjs';

const MB = 1e6;
const MIB = 1024 * 1024;
const file = (path) => fileURLToPath(new URL(path, import.meta.url));

export async function measure(bench) {
  const watchers = await watcherCosts(bench);
  const logs = await logCosts(bench);
  await measureScale(bench);
  const scale = JSON.parse(await readFile(file('../scale.json'), 'utf8'));
  await writeSeries('growth', { watchers, logs });
  // Figures that do not count make no picture that stays.
  const images = bench.quick ? bench.dir : file('../../docs/img');
  await draw((name) => join(images, `${name}.svg`), { watchers, logs, scale });
  console.log(`drawn into ${images}`);
}

/** Server and supervisor CPU for each delivered MB: about as much is delivered at every step. */
async function watcherCosts(bench) {
  const delivered = bench.size(256, 4) * MB;
  const server = await startServer(bench, { plain: true });
  const pids = (await server.pids()).join(',');
  const costs = [];
  for (const count of [1, 10, 100, bench.size(1000, 200)]) {
    const { printed, command } = await floodText(bench, Math.max(delivered / count, MB / 4));
    const flags = { id: newId(), bytes: printed, watchers: count, conns: Math.min(count, 8), pids };
    const { cpu, bytes } = await ask(bench, server, 'flood', { ...flags, timeout: 120 }, command);
    costs.push({ count, msPerMb: (cpu * 1000) / (bytes / MB) });
  }
  return costs;
}

/** What is found in a log, by its length. */
async function logCosts(bench) {
  const stateDir = join(bench.dir, 'growth');
  const sizes = [1, 8, 64, 256, 1024].filter((mib) => mib <= bench.size(1024, 8));
  const lasts = [];
  for (const mib of sizes) {
    lasts.push(await fillLog(await makePastTerminal(stateDir, `log${mib}`), mib * MIB));
  }
  const server = await startServer(bench, { stateDir, plain: true });
  const costs = [];
  for (const [i, mib] of sizes.entries()) {
    const id = `log${mib}`;
    const count = bench.size(200, 10);
    const seek = await ask(bench, server, 'seek', { id, after: lasts[i] - 1, count });
    const replay = await ask(bench, server, 'replay', { id, timeout: 120 });
    const pattern = await ask(bench, server, 'pattern', {
      ...{ id, timeout: 240 },
      pattern: NEEDLE_PATTERN,
    });
    costs.push({ mib, seekUs: seek.p50_us, replayS: replay.seconds, patternS: pattern.seconds });
  }
  return costs;
}

async function draw(image, { watchers, logs, scale }) {
  const points = (list, x, y) => list.map((entry) => [entry[x], y(entry)]);
  const whole = ({ server, supervisor }) => (server.held + supervisor.held) / MIB;
  await writePlot(image('cpu-by-watchers'), {
    title: 'CPU for each delivered megabyte',
    x: 'watchers of one terminal',
    y: 'ms of CPU per MB',
    series: { 'server and supervisor': points(watchers, 'count', ({ msPerMb }) => msPerMb) },
  });
  await writePlot(image('log-length'), {
    title: 'What is found in a log',
    x: 'MiB of output in the log',
    y: 'milliseconds',
    series: {
      'seek to the last event': points(logs, 'mib', ({ seekUs }) => seekUs / 1000),
      'replay from the first event': points(logs, 'mib', ({ replayS }) => replayS * 1000),
      'Wait for a pattern at the end': points(logs, 'mib', ({ patternS }) => patternS * 1000),
    },
  });
  await writePlot(image('memory'), {
    title: 'Memory of server and supervisor together',
    x: 'how many are idle',
    y: 'MiB',
    series: {
      terminals: points(scale.terminals, 'count', whole),
      'watchers of one terminal': points(scale.watchers, 'count', whole),
      'watchers of as many terminals': points(scale.watchersApart, 'count', whole),
    },
  });
  await writePlot(image('latency-by-terminals'), {
    title: 'Latency among live terminals, median',
    x: 'live terminals',
    y: 'milliseconds',
    series: {
      create: points(scale.terminals, 'count', ({ created }) => created.p50_us / 1000),
      'list of 100 or all': points(scale.terminals, 'count', ({ listed }) => listed.p50_us / 1000),
    },
  });
}
