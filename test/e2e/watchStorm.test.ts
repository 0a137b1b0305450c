import { setMaxListeners } from 'node:events';
import { readdir, readlink } from 'node:fs/promises';
import { jest } from '@jest/globals';
import type { Client } from '../../src/client/connect.js';
import { type Clock, systemClock } from '../../src/server/clock.js';
import { Delivery } from '../../src/server/delivery.js';
import { startService, type TestService } from '../support/service.js';

const CONNECTIONS = 10;
const WATCHES_PER_CONNECTION = 100;
/** Watches that no server of ours lets one connection have at a time; the others wait for their turn. */
const WATCHES_OF_THE_STORM = 2_000;
/** Batches of output that the echo of one line may come in. */
const FEW = 10;

/** Counts what is set and not yet over. */
class CountingClock implements Clock {
  timers = 0;

  now(): number {
    return systemClock.now();
  }

  after(ms: number, task: () => void): () => void {
    this.timers += 1;
    let isOver = false;
    const over = () => {
      if (!isOver) this.timers -= 1;
      isOver = true;
    };
    const cancel = systemClock.after(ms, () => {
      over();
      task();
    });
    return () => {
      over();
      cancel();
    };
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('watches that are opened and dropped in numbers (case 17)', () => {
  const clock = new CountingClock();
  const terminal = { id: 'watched' };
  let service: TestService;
  let bystander: Client;
  let seen = '';
  let watching: Promise<void>;

  beforeAll(async () => {
    service = await startService({ clock });
    bystander = service.client({ subject: 'bystander' });
    await bystander.terminals.createTerminal({
      agent: 'coder',
      ...terminal,
      command: ['sh', '-c', 'stty -echo; echo ready; exec cat'],
    });
    watching = (async () => {
      // The bare call: it would not come back if its connection were lost.
      for await (const { event } of bystander.terminals.watch({ terminal })) {
        if (event.case === 'output') seen += Buffer.from(event.value.data).toString();
      }
    })();
    while (!seen.includes('ready')) await turn();
  });

  afterAll(() => service[Symbol.asyncDispose]());

  /** The bystander's stream lives, and so do calls of others. */
  async function expectLife(text: string): Promise<void> {
    await bystander.terminals.write({ terminal, data: Buffer.from(`${text}\n`) });
    while (!seen.includes(text)) await turn();
    await bystander.terminals.getTerminal({ terminal });
  }

  /** What the server holds: to be the same before and after. */
  async function held() {
    const { terminal: found } = await bystander.terminals.getTerminal({ terminal });
    const { streams, watchedTerminals } = service.server.load;
    const logs: string[] = [];
    for (const fd of await readdir('/proc/self/fd')) {
      const path = await readlink(`/proc/self/fd/${fd}`).catch(() => '');
      if (path.startsWith(service.stateDir)) logs.push(path);
    }
    return {
      streams,
      watchedTerminals,
      timers: clock.timers,
      attachments: found?.attachments.length,
      files: logs.sort(),
    };
  }

  /** How many times the output of one echo was given to a watcher, whether or not that took it. */
  async function givenOfOneEcho(text: string): Promise<number> {
    const given = jest.spyOn(Delivery.prototype, 'events');
    try {
      await expectLife(text);
      return given.mock.calls.length;
    } finally {
      given.mockRestore();
    }
  }

  /** For more than a thousand calls. */
  function stopper(): AbortController {
    const stop = new AbortController();
    setMaxListeners(0, stop.signal);
    return stop;
  }

  async function untilStreams(count: number): Promise<void> {
    while (service.server.load.streams !== count) await turn();
  }

  /** Begins a watch of that token; resolves `over` when the stream has ended, however. */
  function begin(client: Client, token: string, signal: AbortSignal) {
    let started = () => {};
    const opened = new Promise<void>((resolve) => {
      started = resolve;
    });
    const over = (async () => {
      for await (const { event } of client.terminals.watch({ terminal }, { token, signal })) {
        if (event.case === 'started') started();
      }
    })().catch(() => {});
    return { opened, over };
  }

  it('leave no stream, timer or listener behind: 1,000, 100 a connection', async () => {
    const before = await held();
    const { connections } = service.server.load;
    const stop = stopper();
    const clients: Client[] = [];
    const watches: ReturnType<typeof begin>[] = [];
    for (let connection = 0; connection < CONNECTIONS; connection += 1) {
      const client = service.client({ subject: `s${connection}` });
      clients.push(client);
      const token = await service.token({ subject: `s${connection}` });
      for (let n = 0; n < WATCHES_PER_CONNECTION; n += 1) {
        watches.push(begin(client, token, stop.signal));
      }
    }
    await Promise.all(watches.map(({ opened }) => opened));
    expect(service.server.load.streams).toBe(before.streams + watches.length);
    await expectLife('among a thousand');
    stop.abort();
    await Promise.all(watches.map(({ over }) => over));
    await untilStreams(before.streams);
    expect(await held()).toEqual(before);
    expect(await givenOfOneEcho('after a thousand')).toBeLessThanOrEqual(FEW);
    for (const client of clients) client.close();
    while (service.server.load.connections !== connections) await turn();
  }, 60_000);

  it('end at most the one connection that has 2,000, and others live', async () => {
    const before = await held();
    const client = service.client();
    const tokens = await Promise.all(
      Array.from({ length: 20 }, (_, n) => service.token({ subject: `storm${n}` })),
    );
    const stop = stopper();
    const watches = Array.from({ length: WATCHES_OF_THE_STORM }, (_, n) =>
      begin(client, tokens[n % tokens.length] as string, stop.signal),
    );
    let open = 0;
    for (const { opened } of watches) {
      void opened.then(() => {
        open += 1;
      });
    }
    while (open < WATCHES_OF_THE_STORM / 2) await turn();
    await expectLife('in the storm');
    stop.abort();
    await Promise.all(watches.map(({ over }) => over));
    await untilStreams(before.streams);
    expect(await givenOfOneEcho('after the storm')).toBeLessThanOrEqual(FEW);
    expect(await held()).toEqual(before);

    // The client of the storm goes on too, by another connection if that one has ended.
    const again = client.watch({ terminal })[Symbol.asyncIterator]();
    expect((await again.next()).value).toMatchObject({ case: 'started' });
    await again.return?.();
    await untilStreams(before.streams);
  }, 60_000);

  it('left the bystander’s stream whole', async () => {
    await bystander.terminals.kill({ terminal });
    await watching;
    expect(seen.replaceAll('\r', '')).toBe(
      'ready\namong a thousand\nafter a thousand\nin the storm\nafter the storm\n',
    );
    expect(service.server.load).toMatchObject({ streams: 0, watchedTerminals: 0 });
  });
});
