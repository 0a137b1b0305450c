// Terminals whose command ends at once, eight at a time: made, run, recorded, told.
import { fileURLToPath } from 'node:url';
import { killCheck } from '../support/killCheck.mjs';
import { interleave, rowOf } from '../support/measure.mjs';
import { measure as ask, newId, startServer } from '../support/server.mjs';

const NODE_PTY = fileURLToPath(new URL('../support/nodePty.mjs', import.meta.url));
const WITH_SYNCS = fileURLToPath(new URL('../support/ptyWithSyncs.mjs', import.meta.url));
const COMMAND = '/bin/true';

export async function measure(bench) {
  const server = await startServer(bench);
  const count = bench.size(400, 16);
  const seen = [];
  const rates = await interleave(
    {
      ours: async () => {
        const id = `${newId()}-`;
        const flags = { id, count, parallel: 8 };
        for (let i = 0; i < count; i += 1) seen.push({ id: `${id}${i}`, exit: true });
        return (await ask(bench, server, 'churn', flags, [COMMAND])).per_second;
      },
      nodePty: async () =>
        (await bench.json(process.execPath, [NODE_PTY, 'churn', String(count), COMMAND]))
          .per_second,
      withSyncs: async () =>
        (await bench.json(process.execPath, [WITH_SYNCS, bench.dir, String(count), COMMAND]))
          .per_second,
    },
    { rounds: bench.size(5, 1), seconds: 30 },
  );
  const name = 'create and exit of /bin/true, 8 at a time';
  const ours = { name, unit: '1/s', ours: rates.ours };
  const alone = { reference: rates.nodePty, referenceName: 'node-pty alone' };
  bench.row(rowOf({ ...ours, ...alone, atLeast: 0.6 }));
  const withSyncs = 'node-pty with the same syncs';
  bench.row(rowOf({ ...ours, reference: rates.withSyncs, referenceName: withSyncs }));
  bench.row(rowOf({ name: withSyncs, unit: '1/s', ours: rates.withSyncs, ...alone }));
  await killCheck(bench, server, 'create and exit', seen);
}
