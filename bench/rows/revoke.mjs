// From the revocation of a token to the last byte that any stream under it delivers.
import { Skip } from '../support/bench.mjs';
import { rowOf } from '../support/measure.mjs';
import { measure as ask, newId, startServer } from '../support/server.mjs';

const STREAMS = 100;

export async function measure(bench) {
  const server = await startServer(bench);
  const id = newId();
  await ask(bench, server, 'create', { id }, ['/usr/bin/yes']);
  const lastBytes = [];
  const answers = [];
  for (let round = 0; round < bench.size(5, 1); round += 1) {
    const tokenFile = await server.token();
    const flags = { id: `${id}0`, watchers: STREAMS, conns: 4 };
    const result = await ask(bench, { ...server, tokenFile }, 'revoke', flags);
    if (result.unimplemented) throw new Skip('Revoke is not built yet');
    lastBytes.push(result.last_byte_ms);
    answers.push(result.answer_ms);
  }
  const row = (name, ours) => bench.row(rowOf({ name, unit: 'ms', ours }));
  row('revoke to the last byte delivered, 100 streams', lastBytes);
  row('revoke to its answer, 100 streams', answers);
}
