/** A watcher that lags and then reads on (case 14): no byte missing, and no lag taken for an exit. */
import { createHash } from 'node:crypto';
import { startService, type TestService } from '../support/service.js';

/** More than all windows and queues on the way hold together. */
const BYTES = 24_000_000;
const terminal = { id: 'flood' };

describe('a watcher that lags and then reads on (case 14)', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service[Symbol.asyncDispose]());

  it('is behind for the whole of a flood and past the exit, and misses no byte', async () => {
    const [maker, lagging] = [service.client(), service.client()];
    const script = `stty -opost -echo; echo ready; read go; yes 0123456789abcde | head -c ${BYTES}; exit 7`;
    await maker.terminals.createTerminal({
      agent: 'a',
      ...terminal,
      command: ['sh', '-c', script],
    });
    // The bare call: it would not come back by itself if the server ended it.
    const events = lagging.terminals.watch({ terminal })[Symbol.asyncIterator]();
    expect((await events.next()).value?.event.case).toBe('started');
    // What is written before that is echoed.
    await maker.terminals.wait({ terminal, condition: { case: 'pattern', value: 'ready' } });
    await maker.terminals.write({ terminal, data: Buffer.from('go\n') });
    const exit = { case: 'exit', value: true } as const;
    const { exitStatus, matchedSeq } = await maker.terminals.wait({ terminal, condition: exit });
    expect(exitStatus?.exitCode).toBe(7);

    const hash = createHash('sha256');
    const seqs: bigint[] = [];
    const kinds: (string | undefined)[] = [];
    let bytes = 0;
    let last: unknown;
    for (let next = await events.next(); !next.done; next = await events.next()) {
      const { event } = next.value;
      if (event.case === 'output') {
        hash.update(event.value.data);
        bytes += event.value.data.length;
        seqs.push(event.value.seq);
      } else if (event.case === 'exited') {
        seqs.push(event.value.seq);
        last = event.value.status?.exitCode;
      }
      if (event.case !== kinds.at(-1)) kinds.push(event.case);
    }
    const wanted = Buffer.concat([
      Buffer.from('ready\n'),
      Buffer.alloc(BYTES, '0123456789abcde\n'),
    ]);
    expect(bytes).toBe(wanted.length);
    expect(hash.digest('hex')).toBe(createHash('sha256').update(wanted).digest('hex'));
    expect(seqs).toEqual(seqs.map((_, index) => BigInt(index + 1)));
    expect(seqs.at(-1)).toBe(matchedSeq);
    expect(last).toBe(7);
    expect(kinds.slice(-2)).toEqual(['exited', 'closing']);
  }, 120_000);
});
