import { once } from 'node:events';
import { type Client, connect } from '../../src/client/connect.js';
import { AttachmentKind } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { certificates, type FakeServer, fakeServer, responseOf } from './fakeServer.js';

const terminal = { id: 't' };
const open = { terminal, kind: AttachmentKind.SERVICE };
const started = responseOf({ case: 'started', value: { nextSeq: 1n, logEpoch: 1 } });

let server: FakeServer;
let client: Client;
let calls = 0;
let ended: Promise<unknown>[] = [];

beforeEach(async () => {
  calls = 0;
  ended = [];
  server = await fakeServer({
    watch: (call) => {
      calls += 1;
      ended.push(once(call, 'cancelled'));
      call.write(started);
    },
    attach: (call) => {
      calls += 1;
      ended.push(once(call, 'cancelled'));
      call.on('error', () => {});
      call.write(started);
    },
    getTerminal: (call) => {
      calls += 1;
      ended.push(once(call, 'cancelled'));
      waiting.shift()?.();
    },
  });
  client = connect({ address: server.address, ca: certificates.ca, token: async () => 'token' });
});

afterEach(async () => {
  client.close();
  await server[Symbol.asyncDispose]();
});

const waiting: (() => void)[] = [];

async function cases(events: AsyncIterable<{ readonly case: string }>, onFirst: () => void) {
  const seen: string[] = [];
  for await (const event of events) {
    if (seen.push(event.case) === 1) onFirst();
  }
  return seen;
}

describe('closing the client', () => {
  it('ends a watch quietly, and the server hears of it', async () => {
    expect(await cases(client.watch({ terminal }), () => client.close())).toEqual(['started']);
    await Promise.all(ended);
    expect(calls).toBe(1);
  });

  it('ends an attachment quietly, its waiting input too, and the server hears of it', async () => {
    const attachment = await client.attach(open);
    const typed = attachment.input(Buffer.alloc(1024 * 1024));
    expect(await cases(attachment.events, () => client.close())).toEqual(['started']);
    await typed;
    await attachment.resize({ columns: 1, rows: 1 });
    await Promise.all(ended);
    expect(calls).toBe(1);
  });

  it('ends an attachment that is between two attempts to connect, without another one', async () => {
    const failures: unknown[] = [];
    const attachment = await client.attach(open, {
      pacing: {
        now: () => 0,
        random: () => 0,
        // Closed while it waits, which its signal tells.
        sleep: (_, signal) =>
          new Promise((_resolve, reject) => {
            signal?.addEventListener('abort', () => reject(new Error('the wait was cut short')));
            client.close();
          }),
      },
      onInterruption: (failure) => failures.push(failure),
    });
    expect(await cases(attachment.events, () => server.cut())).toEqual(['started']);
    expect({ calls, failures }).toEqual({ calls: 1, failures: [] });
  });

  it('ends a watch that is between two attempts to connect, without another one', async () => {
    const failures: unknown[] = [];
    const events = client.watch(
      { terminal },
      {
        pacing: {
          now: () => 0,
          random: () => 0,
          sleep: async (_, signal) => {
            client.close();
            signal?.throwIfAborted();
          },
        },
        onInterruption: (failure) => failures.push(failure),
      },
    );
    expect(await cases(events, () => server.cut())).toEqual(['started']);
    expect({ calls, failures }).toEqual({ calls: 1, failures: [] });
  });

  it('fails single calls, those in progress and those that come later', async () => {
    const arrived = new Promise<void>((resolve) => waiting.push(resolve));
    const call = client.terminals.getTerminal({ terminal });
    const failing = expect(call).rejects.toMatchObject({ code: 'CANCELLED' });
    await arrived;
    client.close();
    await failing;
    await expect(client.terminals.getTerminal({ terminal })).rejects.toMatchObject({
      code: 'CANCELLED',
      message: 'the client was closed',
    });
  });

  it('refuses streams that come later', async () => {
    client.close();
    await expect(cases(client.watch({ terminal }), fail)).rejects.toThrow('the client was closed');
    await expect(client.attach(open)).rejects.toThrow('the client was closed');
  });

  it('leaves the reason to a signal that came before it', async () => {
    const abort = new AbortController();
    const watching = cases(client.watch({ terminal }, { signal: abort.signal }), () => {
      abort.abort(new Error('enough'));
      client.close();
    });
    await expect(watching).rejects.toThrow('enough');
  });
});

function fail(): never {
  throw new Error('nothing was to come');
}
