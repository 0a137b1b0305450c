/** A wall clock that is set while terminals run. */
import { readFile } from 'node:fs/promises';
import { systemClock } from '../../src/server/clock.js';
import { owner } from '../support/registry.js';
import { startService } from '../support/service.js';
import { seqsTo, watchAll } from '../support/streams.js';

const HOUR_MS = 3_600_000;

const reasonOf = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: { reason?: string }) => error.reason,
  );

it('a clock that is set back and forth: seq never steps, times say what the clock said, tokens go by it', async () => {
  let ahead = 0;
  const now = () => systemClock.now() + ahead;
  await using service = await startService({ clock: { now, after: systemClock.after } });
  const client = service.client();
  const terminal = { id: 'clock' };
  const script = 'stty -echo -opost; echo ready; while read line; do echo "got $line"; done';
  const command = ['sh', '-c', script];
  await client.terminals.createTerminal({ agent: 'a', ...terminal, command });
  await client.terminals.wait({ terminal, condition: { case: 'pattern', value: 'ready' } });
  const watched = watchAll(client, { terminal });
  const type = async (word: string, by = client) => {
    await by.terminals.write({ terminal, data: Buffer.from(`${word}\n`) });
    await by.terminals.wait({ terminal, condition: { case: 'pattern', value: `got ${word}` } });
  };
  await type('one');
  // A little: tokens allow for 30 s of difference.
  ahead = -20_000;
  await type('two');
  // Much: a token of the time before is not valid yet, one of the time after is, and nothing else changes.
  ahead = -HOUR_MS;
  expect(await reasonOf(type('never'))).toBe('TOKEN_INVALID');
  const earlier = service.client();
  await type('three', earlier);
  // Forward, past the end of all of them: revoked by time, as it were.
  ahead = 2 * HOUR_MS;
  expect(await reasonOf(type('never', earlier))).toBe('TOKEN_EXPIRED');
  const later = service.client();
  await type('four', later);
  ahead = 0;
  await type('five');
  await client.terminals.kill({ terminal });

  // It went on through all of this but the time when its token had expired.
  expect(await reasonOf(watched)).toBe('TOKEN_EXPIRED');
  const { output, seqs } = await watchAll(client, { terminal });
  expect(output.toString()).toBe('ready\ngot one\ngot two\ngot three\ngot four\ngot five\n');
  expect(seqs).toEqual(seqsTo(seqs.length));
  const log = `${service.stateDir}/home/${owner}/agent/a/session/default/terminal/clock/events.jsonl`;
  const events = (await readFile(log, 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const times = events.map(({ ts }) => Number(ts));
  expect(Math.max(...times) - Math.min(...times)).toBeGreaterThan((3 * HOUR_MS) / 1000 - 100);
});
