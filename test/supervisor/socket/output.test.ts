import { AsyncQueue } from '../../../src/core/asyncQueue.js';
import { GranttyError } from '../../../src/core/errors.js';
import type { OutputEvent } from '../../../src/core/event.js';
import { borrowBlock, HEAD_BYTES } from '../../../src/core/eventBlocks.js';
import { Loan } from '../../../src/core/loan.js';
import type { LiveItem, Supervisor } from '../../../src/supervisor/api.js';
import { name, owner } from '../../support/registry.js';
import { served } from '../../support/socketRegistry.js';
import { fakeSupervisor } from './fakeSupervisor.js';
import { greet, rawPeer } from './rawPeer.js';

const key = { owner, id: name('a') };
const never = new AbortController().signal;

function output(seq: number, data: Uint8Array): LiveItem {
  const event: OutputEvent = { type: 'pty.output', seq, timeMicros: 0, data };
  return { kind: 'events', events: [event] };
}

/** Gives `items` to everybody who opens an output. */
function giving(items: () => LiveItem[] | AsyncIterable<LiveItem>): Supervisor {
  return fakeSupervisor({
    openOutput: async () => ({
      nextSeq: 1,
      items: (async function* () {
        yield* items();
      })(),
    }),
  });
}

/** How events are divided among items is the connection's own business. */
function oneByOne(item: LiveItem): LiveItem[] {
  if (item.kind === 'resized') return [item];
  return item.events.map((event) => ({ kind: 'events', events: [event] }));
}

/** Gives nothing until the signal fires. */
const silent = fakeSupervisor({
  openOutput: async (_, signal) => {
    const items = new AsyncQueue<LiveItem>(1);
    signal.addEventListener('abort', () => items.end());
    return { nextSeq: 1, items };
  },
});

describe('output over the supervisor’s socket', () => {
  it('brings events, sizes, exits and the end over in order, from the first on', async () => {
    const items: LiveItem[] = [
      output(7, Buffer.from([0, 255, 10])),
      { kind: 'resized', size: { cols: 3, rows: 4 } },
      {
        kind: 'events',
        events: [
          {
            type: 'pty.output',
            seq: 8,
            timeMicros: 1.7e15,
            data: Buffer.from('x'),
            size: { cols: 3, rows: 4 },
            instance: 2,
          },
          { type: 'process.exit', seq: 9, timeMicros: 1.7e15, exitCode: 0, instance: 2 },
        ],
      },
    ];
    await using over = await served(giving(() => items));
    for (let turn = 0; turn < 50; turn += 1) {
      const { nextSeq, items: received } = await over.supervisor.openOutput(key, never);
      expect(nextSeq).toBe(1);
      const seen: LiveItem[] = [];
      for await (const item of received) seen.push(item);
      expect(seen.flatMap(oneByOne)).toEqual(items.flatMap(oneByOne));
    }
  });

  it('ends with the error that the supervisor ends it with, after what came before', async () => {
    await using over = await served(
      giving(async function* () {
        yield output(1, Buffer.from('x'));
        throw new GranttyError('SUPERVISOR_UNAVAILABLE', 'too far behind', { retryAfterMs: 5 });
      }),
    );
    const { items } = await over.supervisor.openOutput(key, never);
    const iterator = items[Symbol.asyncIterator]();
    expect((await iterator.next()).value).toEqual(output(1, Buffer.from('x')));
    await expect(iterator.next()).rejects.toMatchObject({
      message: 'too far behind',
      retryAfterMs: 5,
    });
  });

  it('is ended on the other side when the consumer leaves or the signal fires', async () => {
    const left: (() => void)[] = [];
    const ended = [0, 1].map(() => new Promise<void>((resolve) => left.push(resolve)));
    await using over = await served(
      fakeSupervisor({
        openOutput: async (_, signal) => {
          const queue = new AsyncQueue<LiveItem>(10);
          queue.push(output(1, Buffer.from('x')));
          signal.addEventListener('abort', () => {
            queue.end();
            left.shift()?.();
          });
          return { nextSeq: 1, items: queue };
        },
      }),
    );
    for await (const _ of (await over.supervisor.openOutput(key, never)).items) break;
    await ended[0];
    const stop = new AbortController();
    const { items } = await over.supervisor.openOutput(key, stop.signal);
    for await (const _ of items) stop.abort();
    await ended[1];
  });

  it('holds a bounded stretch for a reader who stops, then ends, and delays nobody else', async () => {
    const data = Buffer.alloc(65_536, 1);
    const bound = 8 * 1024 * 1024;
    const queues = new Map<string, AsyncQueue<LiveItem>>();
    await using over = await served(
      fakeSupervisor({
        openOutput: async ({ id }, signal) => {
          const queue = new AsyncQueue<LiveItem>(bound, () => data.length);
          queues.set(id, queue);
          signal.addEventListener('abort', () => queue.end());
          return { nextSeq: 1, items: queue };
        },
      }),
    );
    const { supervisor } = over;
    const stopped = await supervisor.openOutput({ owner, id: name('stopped') }, never);
    const reader = await supervisor.openOutput({ owner, id: name('reader') }, never);
    const reading = reader.items[Symbol.asyncIterator]();

    // Until the supervisor's queue for the stopped reader is full, as a terminal would find it.
    let seq = 1;
    for (let accepted = true; accepted; seq += 1) {
      accepted = queues.get('stopped')?.push(output(seq, data)) ?? false;
      queues.get('reader')?.push(output(seq, data));
      expect((await reading.next()).value).toMatchObject({ events: [{ seq }] });
      expect(seq * data.length).toBeLessThan(5 * bound);
    }
    queues.get('stopped')?.fail(new GranttyError('SUPERVISOR_UNAVAILABLE', 'too far behind'));

    let next = 1;
    const late = async () => {
      for await (const item of stopped.items) {
        if (item.kind === 'events') expect(item.events.map((event) => event.seq)).toEqual([next]);
        next += 1;
      }
    };
    await expect(late()).rejects.toMatchObject({ message: 'too far behind' });
    expect(next).toBe(seq - 1);
  });

  it('lends the memory of large events, with room in front, and never what somebody holds', async () => {
    const sizes = Array.from({ length: 200 }, (_, at) => (at % 7 === 0 ? 900 : 65_536 - at));
    const dataOf = (at: number) => Buffer.alloc(sizes[at] ?? 0, at);
    await using over = await served(giving(() => sizes.map((_, at) => output(at + 1, dataOf(at)))));
    const held: { readonly at: number; readonly data: Uint8Array; release(): void }[] = [];
    const memories = new Set<ArrayBufferLike>();
    const { items } = await over.supervisor.openOutput(key, never);
    let at = 0;
    for await (const item of items) {
      const [event] = item.kind === 'events' ? item.events : [];
      if (item.kind !== 'events' || event?.type !== 'pty.output') throw new Error('no output');
      const { loan, room = 0 } = item;
      expect(event.seq).toBe(at + 1);
      expect(loan !== undefined).toBe(sizes[at] !== 900);
      if (loan) {
        const { data } = event;
        expect(room).toBeGreaterThanOrEqual(HEAD_BYTES);
        memories.add(data.buffer);
        // Written to as a head would be.
        new Uint8Array(data.buffer, data.byteOffset - room, room).fill(0xee);
        held.push({ at, data, release: loan.release });
      }
      // Not in the order in which they came, and all are looked at again before they go.
      while (held.length > 5) {
        const [going] = held.splice((at * 3) % held.length, 1);
        if (going) expect(dataOf(going.at).equals(going.data)).toBe(true);
        going?.release();
      }
      at += 1;
    }
    expect(at).toBe(sizes.length);
    expect(memories.size).toBeLessThan(sizes.length / 2);
  });

  it('gives a block back when the kernel has it, and not before', async () => {
    const blocks = Array.from({ length: 40 }, () => {
      const { bytes, loan } = borrowBlock();
      return { bytes: bytes.subarray(0, 65_536).fill(1), loan };
    });
    let returned = 0;
    await using over = await served(
      giving(() =>
        blocks.map(({ bytes, loan }, at) => ({
          kind: 'events',
          events: [{ type: 'pty.output', seq: at + 1, timeMicros: 0, data: bytes }],
          loan: new Loan(() => {
            returned += 1;
            // From here on somebody else may write to it.
            bytes.fill(0xee);
            loan.release();
          }),
        })),
      ),
    );
    const { items } = await over.supervisor.openOutput(key, never);
    for await (const item of items) {
      const [event] = item.kind === 'events' ? item.events : [];
      const data = event?.type === 'pty.output' ? event.data : Buffer.alloc(0);
      expect(data.length).toBe(65_536);
      expect(data.every((byte) => byte === 1)).toBe(true);
    }
    expect(returned).toBe(blocks.length);
  });

  it('is closed when the other end sends what it should not', async () => {
    await using over = await served(silent);
    const peer = await rawPeer(over.path);
    const purpose = { case: 'output', value: { key } } as const;
    expect(await greet(peer, { purpose })).toMatchObject({ case: 'opened' });
    peer.socket.write(Buffer.from([0]));
    await peer.closed;
  });
});
