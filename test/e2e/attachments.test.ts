/** How many may be attached to one terminal: by one principal, who gets another place when one leaves. */
import type { Client } from '../../src/client/connect.js';
import { AttachmentKind } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { startService, type TestService } from '../support/service.js';

const PER_PRINCIPAL = 16;
const terminal = { id: 't1' };

describe('attachments of one terminal', () => {
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

  it('are sixteen of one principal at most, over all its connections; QUOTA_STREAMS above', async () => {
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
  }, 60_000);
});
