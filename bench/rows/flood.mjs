// One terminal pours out text as fast as it can, one watcher takes it.
import { createReadStream } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { resourceDir } from '../../dist/store/paths.js';
import { LogReader } from '../../dist/store/reader/logReader.js';
import { Skip } from '../support/bench.mjs';
import { floodText } from '../support/floodText.mjs';
import { interleave, rowOf } from '../support/measure.mjs';
import {
  measure as ask,
  client,
  newId,
  OWNER,
  startBareTerminals,
  startServer,
} from '../support/server.mjs';
import { startSshd } from '../support/sshd.mjs';

const path = (name) => fileURLToPath(new URL(`../support/${name}`, import.meta.url));
const MB = 1e6;

export async function measure(bench) {
  const text = await floodText(bench, bench.size(128, 4) * MB);
  const small = await floodText(bench, bench.size(32, 1) * MB);
  const binary = await client(bench);
  const plain = await startServer(bench, { plain: true });
  const tls = await startServer(bench);
  const processes = await startBareTerminals(bench, plain);
  const processesTls = await startBareTerminals(bench, tls);
  let last;

  const rate = ({ seconds, bytes }) => bytes / MB / seconds;
  const ours = async (server, { printed, command }) => {
    const id = newId();
    const result = await ask(bench, server, 'flood', { id, bytes: printed }, command);
    last = { id, lastSeq: result.last_seq };
    return rate(result);
  };
  const bare = async ({ printed, command }) =>
    rate(await bench.json('python3', [path('barePty.py'), String(printed), ...command]));
  const contestants = {
    bare: () => bare(text),
    plain: () => ours(plain, text),
    tls: () => ours(tls, text),
    processes: () => ours(processes, text),
    processesTls: () => ours(processesTls, text),
    bareRaw: () => bare(text.raw),
    plainRaw: () => ours(plain, text.raw),
    nodePty: async () => {
      const args = [path('nodePty.mjs'), 'flood', String(text.printed), ...text.command];
      return rate(await bench.json(process.execPath, args));
    },
  };
  const ssh = await orSkip(bench, 'flood against OpenSSH', () => startSshd(bench));
  if (ssh) {
    const overSsh = async ({ printed, shell }) =>
      rate(await bench.json(binary, ['exec-flood', '-bytes', String(printed), ...ssh(shell)]));
    contestants.ssh = () => overSsh(text);
    contestants.sshRaw = () => overSsh(text.raw);
  }
  const tmux = await orSkip(bench, 'flood against tmux', () => hasTmux(bench));
  if (tmux) {
    contestants.tmux = async () =>
      rate(
        await bench.json('python3', [path('tmuxControl.py'), String(small.printed), small.shell]),
      );
  }

  const rates = await interleave(contestants, { rounds: bench.size(5, 1), seconds: 60 });
  const row = (name, own, other, referenceName, atLeast) => {
    if (rates[other] === undefined) return;
    const [ours, reference] = [rates[own], rates[other]];
    bench.row(rowOf({ name, unit: 'MB/s', ours, reference, referenceName, atLeast }));
  };
  row('flood, plain TCP', 'plain', 'bare', 'bare PTY reader', 0.9);
  row('flood, plain TCP', 'plain', 'ssh', 'OpenSSH', 1);
  row('flood, TLS', 'tls', 'ssh', 'OpenSSH', 0.9);
  row('flood, plain TCP', 'plain', 'nodePty', 'node-pty alone');
  row('flood, plain TCP', 'plain', 'tmux', 'tmux control mode');
  row('flood, plain TCP', 'plain', 'processes', 'two bare processes');
  row('flood, TLS', 'tls', 'processesTls', 'two bare processes');
  row('two bare processes, plain TCP', 'processes', 'bare', 'bare PTY reader');
  row('two bare processes, plain TCP', 'processes', 'ssh', 'OpenSSH');
  row('two bare processes, TLS', 'processesTls', 'ssh', 'OpenSSH');
  const raw = 'flood, plain TCP, terminal in raw mode';
  row(raw, 'plainRaw', 'bareRaw', 'bare PTY reader');
  row(raw, 'plainRaw', 'sshRaw', 'OpenSSH');

  await ours(tls, text);
  await tls.end('SIGKILL');
  bench.row(
    rowOf({
      name: 'flood, then kill -9: bytes seen and not in the log',
      unit: 'bytes',
      ours: [text.printed + 'ready\r\n'.length - (await logged(tls, last, text))],
      atMost: 0,
    }),
  );
}

/** Bytes of output up to what the client had seen, each as it was poured out. */
async function logged({ stateDir }, { id, lastSeq }, { file }) {
  const dir = resourceDir(stateDir, { owner: OWNER, agent: 'bench', session: 'default', id });
  const log = await LogReader.open(dir);
  const expected = printedBytes(file);
  let total = 0;
  try {
    for await (const events of log.read(1, lastSeq)) {
      for (const { data } of events) {
        if (!(await expected.next(data))) throw new Error(`the log is wrong behind byte ${total}`);
        total += data.length;
      }
    }
  } finally {
    await log.close();
    expected.close();
  }
  return total;
}

/** Compares, piece by piece, with what a terminal prints of the file. */
function printedBytes(file) {
  const stream = createReadStream(file, { highWaterMark: 1 << 20 });
  const chunks = stream[Symbol.asyncIterator]();
  let ahead = Buffer.from('ready\r\n\r\n');
  return {
    async next(data) {
      while (ahead.length < data.length) {
        const { value, done } = await chunks.next();
        if (done) return false;
        const printed = Buffer.from(value.toString('latin1').replaceAll('\n', '\r\n'), 'latin1');
        ahead = Buffer.concat([ahead, printed]);
      }
      const same = ahead.subarray(0, data.length).equals(data);
      ahead = ahead.subarray(data.length);
      return same;
    },
    close: () => stream.destroy(),
  };
}

async function hasTmux(bench) {
  await bench.run('tmux', ['-V']).catch(() => {
    throw new Skip('tmux is not installed');
  });
  return true;
}

async function orSkip(bench, name, find) {
  try {
    return await find();
  } catch (error) {
    if (!(error instanceof Skip)) throw error;
    bench.row({ name, skipped: error.message });
    return undefined;
  }
}
