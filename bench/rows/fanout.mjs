// What a delivered megabyte costs the server: with one watcher, and with two hundred.
import { floodText } from '../support/floodText.mjs';
import { killCheck } from '../support/killCheck.mjs';
import { interleave, rowOf } from '../support/measure.mjs';
import { measure as ask, newId, startServer } from '../support/server.mjs';

const WATCHERS = 200;
const MB = 1e6;

export async function measure(bench) {
  const server = await startServer(bench, { plain: true });
  const long = await floodText(bench, bench.size(128, 2) * MB);
  const short = await floodText(bench, bench.size(8, 0.2) * MB);
  const pids = (await server.pids()).join(',');
  const seen = [];
  const msPerMb = async ({ printed, command }, watchers) => {
    const id = newId();
    seen.push({ id, bytes: 'ready\r\n'.length + printed });
    const flags = { id, bytes: printed, watchers, conns: watchers > 1 ? 8 : 1, pids };
    const { cpu, bytes } = await ask(bench, server, 'flood', flags, command);
    return (cpu * 1000) / (bytes / MB);
  };
  const costs = await interleave(
    { many: () => msPerMb(short, WATCHERS), one: () => msPerMb(long, 1) },
    { rounds: bench.size(5, 1), seconds: 35 },
  );
  bench.row(
    rowOf({
      name: 'server CPU per delivered MB, 200 watchers',
      unit: 'ms/MB',
      ours: costs.many,
      reference: costs.one,
      referenceName: '1 watcher',
      atMost: 0.5,
    }),
  );
  await killCheck(bench, server, 'watchers', seen);
}
