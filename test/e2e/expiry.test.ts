import { type Client, connect } from '../../src/client/connect.js';
import type { WatchEvent } from '../../src/client/watch.js';
import { ClosingReason } from '../../src/gen/public/grantty/v1/stream_pb.js';
import type { WatchResponse } from '../../src/gen/public/grantty/v1/terminal_service_pb.js';
import { startService, type TestService } from '../support/service.js';
import { seqsTo, transcriptOf, watchAll } from '../support/streams.js';

/** Whether the token has expired, by the claim that it states. */
function isOver(token: string): boolean {
  const { exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
  return Date.now() >= exp * 1000;
}

describe('a token that expires in the middle of a watch (case 20)', () => {
  let service: TestService;
  let client: Client;

  beforeAll(async () => {
    service = await startService();
    client = service.client();
  });

  afterAll(() => service[Symbol.asyncDispose]());

  /** Prints a line every 20 ms until it is written to. */
  async function chatter(id: string) {
    const terminal = { id };
    const script =
      'i=0; (while :; do i=$((i+1)); echo line $i; sleep 0.02; done) & read go; kill $!; wait; echo end';
    await client.terminals.createTerminal({
      agent: 'coder',
      id,
      command: ['sh', '-c', script],
    });
    return terminal;
  }

  it('ends it with UNAUTHENTICATED, TOKEN_EXPIRED and the last seq, from which a renewed token goes on', async () => {
    const terminal = await chatter('raw');
    const first: WatchResponse['event'][] = [];
    let failure: unknown;
    const token = await service.token({ ttl: 2 });
    try {
      for await (const { event } of client.terminals.watch({ terminal }, { token })) {
        first.push(event);
      }
    } catch (error) {
      failure = error;
    }
    const before = transcriptOf(first);
    const lastSeq = before.seqs.at(-1) ?? 0n;
    expect(lastSeq).toBeGreaterThan(0n);
    expect(before.kinds.filter((kind) => kind !== 'output' && kind !== 'resized')).toEqual([
      'started',
      'expiring',
      'closing',
    ]);
    expect(first.at(-1)).toMatchObject({
      case: 'closing',
      value: { reason: ClosingReason.TOKEN_EXPIRED, lastSeq },
    });
    expect(failure).toMatchObject({
      code: 'UNAUTHENTICATED',
      reason: 'TOKEN_EXPIRED',
      metadata: { last_seq: String(lastSeq) },
    });

    await expect(watchAll(service.client(token), { terminal })).rejects.toMatchObject({
      code: 'UNAUTHENTICATED',
      reason: 'TOKEN_EXPIRED',
    });
    await client.terminals.write({ terminal, data: Buffer.from('\n') });
    const after = await watchAll(service.client(await service.token()), {
      terminal,
      start: { case: 'after', value: { afterSeq: lastSeq } },
    });
    const whole = await watchAll(client, { terminal });
    expect(whole.output.toString()).toContain('end');
    expect([...before.seqs, ...after.seqs]).toEqual(seqsTo(whole.seqs.length));
    expect(Buffer.concat([before.output, after.output]).equals(whole.output)).toBe(true);
  });

  it('is not felt through a client whose token source has a renewed one by then', async () => {
    const terminal = await chatter('renewed');
    const [short, renewed] = [await service.token({ ttl: 2 }), await service.token()];
    const interruptions: unknown[] = [];
    using watcher = connect({
      address: service.address,
      ca: service.ca,
      token: async () => (interruptions.length === 0 && !isOver(short) ? short : renewed),
    });
    const events: WatchEvent[] = [];
    const options = { onInterruption: (failure: unknown) => interruptions.push(failure) };
    for await (const event of watcher.watch({ terminal }, options)) {
      events.push(event);
      if (interruptions.length === 0 || event.case !== 'output') continue;
      await client.terminals.write({ terminal, data: Buffer.from('\n') }).catch(() => {});
    }
    expect(interruptions).toMatchObject([{ code: 'UNAUTHENTICATED', reason: 'TOKEN_EXPIRED' }]);
    const { seqs, output } = transcriptOf(events);
    const whole = await watchAll(client, { terminal });
    expect(seqs).toEqual(seqsTo(whole.seqs.length));
    expect(output.equals(whole.output)).toBe(true);
  });
});
