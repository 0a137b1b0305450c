/** The client over connections that end by their age: all the time, under output, input and calls. */
import { startService, type TestService } from '../support/service.js';

/** Milliseconds: a watch of some seconds is moved several times, also where a connection takes long. */
const AGE_MS = 1_000;
const LINES = 2_000;
/** Connections that the work below has to go through at least. */
const MOVES = 2;

describe('a client of a server that ends connections by their age', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService({ limits: { connectionAgeMs: AGE_MS } });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  it('reads on without gap or duplicate, and no call of it fails', async () => {
    const client = service.client();
    const terminal = { id: 'counted' };
    await client.terminals.createTerminal({
      agent: 'coder',
      ...terminal,
      command: [
        ...['sh', '-c'],
        `read go; stty -echo; i=0; while [ $i -lt ${LINES} ]; do i=$((i+1)); echo line $i; ` +
          '[ $((i % 40)) -eq 0 ] && sleep 0.07; done; echo over; read end',
      ],
    });
    let moves = 0;
    const seqs: bigint[] = [];
    const watched = (async () => {
      const chunks: Uint8Array[] = [];
      const moved = () => {
        moves += 1;
      };
      for await (const { case: kind, value } of client.watch(
        { terminal },
        { onInterruption: moved },
      )) {
        if (kind !== 'output') continue;
        seqs.push(value.seq);
        chunks.push(value.data);
      }
      return Buffer.concat(chunks).toString();
    })();
    const attachment = await client.attach({ terminal, kind: 3 });
    const attached = (async () => {
      const chunks: Uint8Array[] = [];
      for await (const { case: kind, value } of attachment.events) {
        if (kind === 'output') chunks.push(value.data);
      }
      return Buffer.concat(chunks).toString();
    })();
    // Longer than several connections live: sent away, it waits on.
    const waited = client.terminals.wait({
      terminal,
      condition: { case: 'pattern', value: 'over' },
    });
    await client.terminals.write({ terminal, data: Buffer.from('go\n') });
    let isOver = false;
    const calls = (async () => {
      let count = 0;
      for (; !isOver; count += 1) await client.terminals.getTerminal({ terminal });
      return count;
    })();
    expect((await waited).matchedSeq).toBeGreaterThan(0n);
    isOver = true;
    expect(await calls).toBeGreaterThan(MOVES);
    await client.terminals.write({ terminal, data: Buffer.from('end\n') });

    // First the echo of the line that starts it.
    const expected = `go\r\n${Array.from({ length: LINES }, (_, n) => `line ${n + 1}`).join('\r\n')}\r\nover\r\n`;
    expect(await watched).toBe(expected);
    expect(await attached).toBe(expected);
    expect(seqs).toEqual(seqs.map((_, index) => (seqs[0] ?? 0n) + BigInt(index)));
    expect(moves).toBeGreaterThanOrEqual(MOVES);
    expect(service.server.load.streams).toBe(0);
  }, 120_000);
});
