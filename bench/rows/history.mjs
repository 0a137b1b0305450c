// What is long past: replayed, searched, and looked up at its end, in a log of 1 GiB.
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { interleave, rowOf } from '../support/measure.mjs';
import { fillLog, makePastTerminal, NEEDLE_PATTERN } from '../support/pastTerminals.mjs';
import { measure as ask, startServer } from '../support/server.mjs';

const DECODE = fileURLToPath(new URL('../support/decodeLog.py', import.meta.url));
const MB = 1e6;
const MIB = 1024 * 1024;

export async function measure(bench) {
  const stateDir = join(bench.dir, 'history');
  const plainFile = join(bench.dir, 'plain-output');
  bench.onEnd(() => rm(plainFile, { force: true }));
  const bytes = bench.size(1024, 8) * MIB;
  const dir = await makePastTerminal(stateDir, 'large');
  const lastOfLarge = await fillLog(dir, bytes, plainFile);
  const lastOfSmall = await fillLog(await makePastTerminal(stateDir, 'small'), MIB);
  const server = await startServer(bench, { stateDir, plain: true });
  const rate = ({ seconds }) => bytes / MB / seconds;

  const replays = await interleave(
    {
      ours: async () => {
        const result = await ask(bench, server, 'replay', { id: 'large', timeout: 120 });
        if (result.bytes !== bytes) throw new Error(`${result.bytes} bytes instead of ${bytes}`);
        return rate(result);
      },
      python: async () => rate(await bench.json('python3', [DECODE, join(dir, 'events.jsonl')])),
    },
    { rounds: 3, seconds: 60 },
  );
  bench.row(
    rowOf({
      name: 'replay of a 1 GiB log from seq 1',
      unit: 'MB/s',
      ours: replays.ours,
      reference: replays.python,
      referenceName: 'Python reads the file',
      atLeast: 1,
    }),
  );

  const searches = await interleave(
    {
      ours: async () => {
        const flags = { id: 'large', pattern: NEEDLE_PATTERN, timeout: 240 };
        return rate(await ask(bench, server, 'pattern', flags));
      },
      grep: async () => {
        const begin = performance.now();
        await bench.run('grep', ['-cE', NEEDLE_PATTERN, plainFile], {
          env: { ...process.env, LC_ALL: 'C.UTF-8' },
        });
        return rate({ seconds: (performance.now() - begin) / 1000 });
      },
    },
    { rounds: 3, seconds: 60 },
  );
  bench.row(
    rowOf({
      name: 'Wait --pattern over 1 GiB of output',
      unit: 'MB/s',
      ours: searches.ours,
      reference: searches.grep,
      referenceName: 'grep -c',
      atLeast: 0.2,
    }),
  );

  const seek = async (id, after) =>
    (await ask(bench, server, 'seek', { id, after, count: bench.size(300, 10) })).p50_us;
  const seeks = await interleave(
    {
      large: () => seek('large', lastOfLarge - 1),
      small: () => seek('small', lastOfSmall - 1),
    },
    { rounds: bench.size(5, 1), seconds: 30 },
  );
  bench.row(
    rowOf({
      name: 'seek to the last output of a 1 GiB log',
      unit: 'µs',
      ours: seeks.large,
      reference: seeks.small,
      referenceName: 'of a 1 MiB log',
      atMost: 1.5,
    }),
  );
}
