// Watches terminals from a process of its own. Standard input: one JSON line {address, ca, token, ids}.
// Standard output: `{"ready":true}` once all streams have begun, then {hashes, bytes} when all have ended.
import { createHash } from 'node:crypto';
import { createInterface } from 'node:readline';
import { connect } from '../../dist/index.js';

const [line] = await createInterface({ input: process.stdin })
  [Symbol.asyncIterator]()
  .next()
  .then(({ value }) => [value]);
const { address, ca, token, ids } = JSON.parse(line);
const client = connect({ address, ca, token: async () => token });

let begun = 0;
async function watch(id) {
  const hash = createHash('sha256');
  let bytes = 0;
  let next = 1n;
  for await (const event of client.watch({ terminal: { id } })) {
    if (event.case === 'started') {
      begun += 1;
      if (begun === ids.length) console.log(JSON.stringify({ ready: true }));
    }
    if (event.case !== 'output') continue;
    if (event.value.seq !== next)
      throw new Error(`${id}: seq ${event.value.seq} instead of ${next}`);
    next += 1n;
    hash.update(event.value.data);
    bytes += event.value.data.length;
  }
  return { id, bytes, hash: hash.digest('hex') };
}

console.log(JSON.stringify({ watched: await Promise.all(ids.map(watch)) }));
client.close();
