// A page of a list, out of few terminals and out of many.
import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { interleave, rowOf } from '../support/measure.mjs';
import { makePastTerminal } from '../support/pastTerminals.mjs';
import { measure as ask, startServer } from '../support/server.mjs';

const PAGE = 100;
const AT_ONCE = 32;

export async function measure(bench) {
  const serverWith = async (terminals) => {
    const stateDir = join(bench.dir, `state-${randomUUID()}`);
    await mkdir(stateDir, { mode: 0o700 });
    const ids = Array.from({ length: terminals }, (_, i) => `p${i}`);
    while (ids.length > 0) {
      await Promise.all(ids.splice(0, AT_ONCE).map((id) => makePastTerminal(stateDir, id)));
    }
    return startServer(bench, { stateDir });
  };
  const few = await serverWith(PAGE);
  const many = await serverWith(bench.size(4096, 200));
  const page = async (server) =>
    (await ask(bench, server, 'list', { page: PAGE, count: bench.size(40, 5) })).p50_us;
  const times = await interleave(
    { many: () => page(many), few: () => page(few) },
    { rounds: bench.size(5, 1), seconds: 20 },
  );
  bench.row(
    rowOf({
      name: 'list of 100 out of 4,096 terminals',
      unit: 'µs',
      ours: times.many,
      reference: times.few,
      referenceName: 'out of 100',
      atMost: 1.5,
    }),
  );
}
