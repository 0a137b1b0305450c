import { connect } from '../../src/client/connect.js';
import type { Pacing } from '../../src/client/reconnection.js';
import type { TerminalsEvent } from '../../src/client/watchTerminals.js';
import { certificates, failure, fakeServer, type Handlers, status } from './fakeServer.js';

const pacing: Pacing = { now: () => 0, random: () => 0, sleep: async () => {} };

const snapshot = (id: string) => ({
  event: { case: 'snapshot', value: { terminal: { ref: { id } } } },
});
const snapshotEnd = (cursor: string, resumed = false) => ({
  event: { case: 'snapshotEnd', value: { cursor, resumed } },
});
const changed = (id: string, cursor: string) => ({
  event: { case: 'changed', value: { terminal: { ref: { id } }, cursor } },
});
const removed = (id: string, cursor: string) => ({
  event: { case: 'removed', value: { ref: { id }, cursor } },
});
const lost = failure({ code: status.UNAVAILABLE });

/** One list a call: messages, ended by a failure or in order. */
function server(calls: unknown[][], cursors: string[]): Handlers {
  return {
    watchTerminals: (call) => {
      cursors.push(call.request.cursor);
      for (const message of calls.shift() ?? []) {
        if (message instanceof Error) return void call.emit('error', message);
        call.write(message);
      }
      call.end();
    },
  };
}

async function told(calls: unknown[][], cursors: string[] = []): Promise<string[]> {
  await using fake = await fakeServer(server(calls, cursors));
  using client = connect({ address: fake.address, ca: certificates.ca, token: async () => 't' });
  const events: TerminalsEvent[] = [];
  for await (const event of client.watchTerminals({}, { pacing })) events.push(event);
  return events.map(({ case: kind, value }) =>
    'cursor' in value ? `${kind} ${value.cursor}` : kind,
  );
}

describe('watching the set of terminals', () => {
  it('goes on after the last change when the connection is lost, and tells nothing twice', async () => {
    const cursors: string[] = [];
    const events = await told(
      [
        [snapshot('a'), snapshotEnd('c1'), changed('a', 'c2'), lost],
        [snapshotEnd('c2', true), lost],
        [snapshotEnd('c2', true), removed('a', 'c3')],
      ],
      cursors,
    );
    expect(events).toEqual(['snapshot', 'snapshotEnd c1', 'changed c2', 'removed c3']);
    expect(cursors).toEqual(['', 'c2', 'c2']);
  });

  it('passes a second snapshot on where the server cannot go on', async () => {
    const events = await told([
      [snapshot('a'), snapshotEnd('c1'), lost],
      [snapshot('b'), snapshotEnd('d1')],
    ]);
    expect(events).toEqual(['snapshot', 'snapshotEnd c1', 'snapshot', 'snapshotEnd d1']);
  });

  it('fails where the first call does', async () => {
    await expect(told([[lost]])).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  });
});
