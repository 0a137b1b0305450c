// A small call through the whole gate: token, grant, policy, audit.
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { interleave, rowOf } from '../support/measure.mjs';
import { makePastTerminal } from '../support/pastTerminals.mjs';
import { measure as ask, newId, startInPlaceOf, startServer } from '../support/server.mjs';

/** About what GetTerminal answers with. */
const ANSWER_BYTES = 300;

export async function measure(bench) {
  const stateDir = join(bench.dir, `state-${randomUUID()}`);
  const id = newId();
  await makePastTerminal(stateDir, id);
  const server = await startServer(bench, { stateDir, plain: true });
  const other = (program, argument) => startInPlaceOf(bench, server, program, argument);
  const grpc = await other('bareGrpc.mjs', stateDir);
  const empty = await other('emptyGrpc.mjs', String(ANSWER_BYTES));
  const http2 = await other('bareHttp2.mjs', String(ANSWER_BYTES));

  const busy = [];
  const calls = async (target) => {
    const flags = {
      ...{ id, parallel: 32, conns: 4, seconds: bench.size(1.5, 0.3) },
      pids: (await target.pids()).join(','),
    };
    const { per_second, cpu } = await ask(bench, target, 'unary', flags);
    busy.push(cpu);
    return per_second;
  };
  const rates = await interleave(
    {
      ours: () => calls(server),
      grpc: () => calls(grpc),
      empty: () => calls(empty),
      http2: () => calls(http2),
    },
    { rounds: bench.size(5, 1), seconds: 35 },
  );
  const note = `the servers were busy for ${Math.min(...busy).toFixed(2)}–${Math.max(...busy).toFixed(2)} of a core`;
  const row = (name, one, other, referenceName, atLeast) =>
    bench.row(
      rowOf({
        ...{ name, unit: 'calls/s', ours: rates[one], reference: rates[other], referenceName },
        atLeast,
        note,
      }),
    );
  row('gated unary call', 'ours', 'grpc', 'same handler without a gate', 0.85);
  row('gated unary call', 'ours', 'http2', 'bare node:http2', 0.5);
  // What bounds them: no server on grpc-js can do better.
  row('empty handler on grpc-js', 'empty', 'http2', 'bare node:http2');
  row('same handler without a gate', 'grpc', 'http2', 'bare node:http2');
}
