/** How many streams one principal may have: attached to one terminal, and in all. */
import { setMaxListeners } from 'node:events';
import type { Client } from '../../src/client/connect.js';
import { AttachmentKind } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { startService, type TestService } from '../support/service.js';

const PER_PRINCIPAL = 16;
const PER_PRINCIPAL_STREAMS = 256;
const terminal = { id: 't1' };

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

describe('the streams of one principal', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService();
    const maker = service.client();
    await maker.terminals.createTerminal({ agent: 'a', ...terminal, command: ['cat'] });
    await maker.terminals.createTerminal({ agent: 'a', session: 's2', id: 't2', command: ['cat'] });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  const attach = (client: Client, ref = terminal) =>
    client.attach({ terminal: ref, kind: AttachmentKind.SERVICE });

  it('are sixteen attachments of one terminal at most, over all its connections; QUOTA_STREAMS above', async () => {
    const [one, two] = [service.client({ subject: 'many' }), service.client({ subject: 'many' })];
    const held = await Promise.all(
      Array.from({ length: PER_PRINCIPAL }, (_, n) => attach(n % 2 === 0 ? one : two)),
    );
    const refused = { code: 'RESOURCE_EXHAUSTED', reason: 'QUOTA_STREAMS' };
    await expect(attach(one)).rejects.toMatchObject(refused);

    // Others, other terminals and mere watching are none of its business.
    (await attach(service.client({ subject: 'other' }))).close();
    (await attach(one, { id: 't2' })).close();
    const watched = two.terminals.watch({ terminal })[Symbol.asyncIterator]();
    expect((await watched.next()).value?.event.case).toBe('started');
    await watched.return?.();

    held[0]?.close();
    for (;;) {
      const attached = await attach(two).catch((error: { reason?: string }) => error);
      if (!('reason' in attached)) break;
      expect(attached).toMatchObject(refused);
    }
    await expect(attach(two)).rejects.toMatchObject(refused);
    for (const attachment of held) attachment.close();
    await until(() => service.server.load.streams <= 1);
  }, 60_000);

  it('lets a principal have 256 streams at a time, over all its connections, and others theirs', async () => {
    const stop = new AbortController();
    setMaxListeners(0, stop.signal);
    const open = async (client: Client) => {
      const events = client.terminals.watch({ terminal }, { signal: stop.signal });
      const iterator = events[Symbol.asyncIterator]();
      await iterator.next();
      return iterator.next().catch(() => {});
    };
    const [one, two] = [service.client({ subject: 'many' }), service.client({ subject: 'many' })];
    await Promise.all([one.server.getServerInfo({}), two.server.getServerInfo({})]);
    const opened = Array.from({ length: PER_PRINCIPAL_STREAMS }, (_, n) =>
      open(n % 2 === 0 ? one : two).catch(() => {}),
    );
    await until(() => service.server.load.streams === PER_PRINCIPAL_STREAMS);
    await expect(open(one)).rejects.toMatchObject({ reason: 'QUOTA_STREAMS' });
    const other = open(service.client({ subject: 'other' })).catch(() => {});
    await until(() => service.server.load.streams === PER_PRINCIPAL_STREAMS + 1);
    stop.abort();
    await Promise.all([...opened, other]);
  }, 120_000);
});
