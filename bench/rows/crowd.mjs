// What a unary call takes while many terminals flood, each with a watcher that takes it all.
import { lineOf } from '../support/bench.mjs';
import { rowOf } from '../support/measure.mjs';
import { measure as ask, client, newId, reach, startServer } from '../support/server.mjs';

const FLOODS = 50;
const CONNECTIONS = 10;

export async function measure(bench) {
  const server = await startServer(bench);
  const id = newId();
  const quiet = newId();
  await ask(bench, server, 'create', { id: quiet }, ['/bin/sleep', '86400']);
  const call = async () => {
    const flags = { id: `${quiet}0`, count: bench.size(300, 20), timeout: 600 };
    return ask(bench, server, 'call', flags);
  };
  const alone = await call();
  const floods = bench.size(FLOODS, 3);
  // Held up by its line discipline until the watchers are there.
  const command = ['/bin/sh', '-c', 'read go; exec yes'];
  await ask(bench, server, 'create', { id, count: floods, parallel: 8 }, command);
  const flags = { id, spread: floods, watchers: floods, conns: CONNECTIONS, timeout: 900 };
  const args = Object.entries(flags).flatMap(([name, value]) => [`-${name}`, String(value)]);
  const child = bench.start(await client(bench), ['hold', ...reach(server), ...args]);
  await lineOf(child, child.stdout, (line) => line === 'held');
  await ask(bench, server, 'type', { id, spread: floods });
  const among = await call();
  for (const point of ['p50', 'p99']) {
    bench.row(
      rowOf({
        name: `get while ${FLOODS} terminals flood, ${point}`,
        unit: 'µs',
        ours: [among[`${point}_us`]],
        reference: [alone[`${point}_us`]],
        referenceName: 'while nothing does',
      }),
    );
  }
}
