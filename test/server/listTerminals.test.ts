import type { MessageInitShape } from '@bufbuild/protobuf';
import type { Name } from '../../src/core/names.js';
import { TerminalState } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { detailsOf, failureOf, Harness, terminals } from './harness.js';

describe('ListTerminals', () => {
  let harness: Harness;
  let token: string;
  beforeAll(async () => {
    harness = await Harness.start();
    token = await harness.token([{ actions: ['terminal.read'] }]);
    const all = [
      { id: 'b1', labels: { tier: 'web', zone: 'x' } },
      { id: 'B2', agent: 'reviewer', labels: { tier: 'web' } },
      { id: 'a3', session: 'night', labels: { tier: 'db' } },
      { id: 'a-4', state: 'exited', labels: { tier: 'web', zone: 'y' } },
      { id: 'a.5' },
      { id: 'hidden', owner: '2000', labels: { tier: 'web' } },
    ];
    for (const record of all) await harness.supervisor.add(record as { id: Name });
  });
  afterAll(() => harness[Symbol.asyncDispose]());

  const list = (request: MessageInitShape<typeof terminals.listTerminals.input>, by = token) =>
    harness.unary(terminals.listTerminals, request, by);
  const ids = async (request: MessageInitShape<typeof terminals.listTerminals.input>, by = token) =>
    (await list(request, by)).terminals.map(({ ref }) => ref?.id);

  it('lists in the bytewise order of owner and id, without what the caller may not read', async () => {
    expect(await ids({})).toEqual(['B2', 'a-4', 'a.5', 'a3', 'b1']);
  });

  it.each([
    [{ owner: '1000' }, ['B2', 'a-4', 'a.5', 'a3', 'b1']],
    [{ owner: '2000' }, []],
    [{ agent: 'reviewer' }, ['B2']],
    [{ session: 'night' }, ['a3']],
    [{ states: [TerminalState.EXITED] }, ['a-4']],
    [{ states: [TerminalState.EXITED, TerminalState.RUNNING] }, ['B2', 'a-4', 'a.5', 'a3', 'b1']],
    [{ labels: { tier: 'web' } }, ['B2', 'a-4', 'b1']],
    [{ labels: { tier: 'web', zone: 'x' } }, ['b1']],
    [{ labels: { constructor: '' } }, []],
    [{ agent: 'coder', labels: { tier: 'web' } }, ['a-4', 'b1']],
  ])('takes all conditions of %j together', async (filter, expected) => {
    expect(await ids({ filter })).toEqual(expected);
  });

  it.each([
    ['filter.agent', { agent: '' }],
    ['filter.owner', { owner: '../x' }],
    ['filter.states', { states: [0] }],
    ['filter.states', { states: [99] }],
  ])('refuses a bad %s', async (field, filter) => {
    const { badRequest } = detailsOf(await failureOf(list({ filter })));
    expect(badRequest?.fieldViolations[0]?.field).toBe(field);
  });

  it('gives pages that stay put while terminals come and go', async () => {
    const pages: (string | undefined)[][] = [];
    let pageToken = '';
    let rounds = 0;
    do {
      const page = await list({ pageSize: 2, pageToken });
      pages.push(page.terminals.map(({ ref }) => ref?.id));
      pageToken = page.nextPageToken;
      rounds += 1;
      if (rounds === 1) {
        // What the page token names goes, and something comes before it.
        await harness.supervisor.remove({ owner: '1000' as Name, id: 'a-4' as Name });
        await harness.supervisor.add({ id: 'A0' as Name });
      }
    } while (pageToken !== '');
    expect(pages).toEqual([['B2', 'a-4'], ['a.5', 'a3'], ['b1']]);
    await harness.supervisor.remove({ owner: '1000' as Name, id: 'A0' as Name });
  });

  it('gives no token for a next page that would be empty', async () => {
    const page = await list({ pageSize: 1, filter: { session: 'night' } });
    expect(page.terminals).toHaveLength(1);
    expect(page.nextPageToken).toBe('');
  });

  it.each([
    'x',
    Buffer.from('["1000"]').toString('base64url'),
    Buffer.from('{}').toString('base64url'),
  ])('refuses the page token %j', async (pageToken) => {
    const { badRequest } = detailsOf(await failureOf(list({ pageToken })));
    expect(badRequest?.fieldViolations[0]?.field).toBe('page_token');
  });

  it('refuses a page token with another filter than it was given for', async () => {
    const { nextPageToken } = await list({ pageSize: 1 });
    const error = await failureOf(list({ pageToken: nextPageToken, filter: { agent: 'coder' } }));
    expect(detailsOf(error).info?.reason).toBe('FIELD_INVALID');
  });

  it('refuses pages of more than 1000', async () => {
    const error = await failureOf(list({ pageSize: 1001 }));
    expect(detailsOf(error).info?.reason).toBe('FIELD_INVALID');
  });

  it('ends a page early rather than exceed what a client takes as one message', async () => {
    await using big = await Harness.start();
    const command = Array.from({ length: 100 }, () => 'x'.repeat(1000));
    for (let i = 0; i < 60; i += 1) await big.supervisor.add({ id: `t${i}` as Name, command });
    const by = await big.token();
    const seen = new Set<string | undefined>();
    let pages = 0;
    let pageToken = '';
    do {
      const page = await big.unary(terminals.listTerminals, { pageSize: 1000, pageToken }, by);
      for (const { ref } of page.terminals) seen.add(ref?.id);
      pageToken = page.nextPageToken;
      pages += 1;
    } while (pageToken !== '');
    expect(seen.size).toBe(60);
    expect(pages).toBeGreaterThan(1);
  });
});
