import { create, fromBinary, type MessageInitShape } from '@bufbuild/protobuf';
import { sizeDelimitedEncode } from '@bufbuild/protobuf/wire';
import { GranttyError } from '../../../src/core/errors.js';
import {
  InputAckSchema,
  InputChunkSchema,
} from '../../../src/gen/internal/grantty/internal/v1/input_pb.js';
import { lease, name, owner, startRegistry } from '../../support/registry.js';
import { served } from '../../support/socketRegistry.js';
import { createPrinting, deaf, outputHolds } from '../../support/supervisorContract.js';
import { FakeChannel, fakeSupervisor, recordingLog } from './fakeSupervisor.js';
import { greet, type RawPeer, rawPeer } from './rawPeer.js';

const key = { owner, id: name('a') };
const agent = { kind: 'agent', subject: 's', principal: 'p' } as const;
const bytes = (text: string) => Buffer.from(text);

describe('input over the supervisor’s socket', () => {
  it('brings chunks and their leases over in order, and acknowledges each', async () => {
    const channel = new FakeChannel();
    await using over = await served(fakeSupervisor({ attach: async () => channel }));
    await using input = await over.supervisor.attach(key, agent);
    const sends = ['one', 'two', 'three'].map((text, index) =>
      input.send(bytes(text), { id: `l${index}`, notAfter: 5.5e12 + index }),
    );
    await channel.arrived(3);
    expect(channel.sent.map(({ data, lease: under }) => [data.toString(), under])).toEqual([
      ['one', { id: 'l0', notAfter: 5.5e12 }],
      ['two', { id: 'l1', notAfter: 5.5e12 + 1 }],
      ['three', { id: 'l2', notAfter: 5.5e12 + 2 }],
    ]);
    channel.sent[0]?.take();
    expect(await sends[0]).toBe(3);
    channel.sent[1]?.take();
    channel.sent[2]?.take();
    expect(await Promise.all(sends.slice(1))).toEqual([11, 11]);
    expect(input.taken).toBe(11);
  });

  it('fails the one chunk that was refused, and says how much was taken of it', async () => {
    const channel = new FakeChannel();
    await using over = await served(fakeSupervisor({ attach: async () => channel }));
    await using input = await over.supervisor.attach(key, agent);
    const sends = ['aa', 'bb', 'cc', 'dd'].map((text) => input.send(bytes(text), lease));
    await channel.arrived(4);
    const [first, second, third, fourth] = channel.sent;
    channel.taken += 1;
    third?.refuse(new GranttyError('GRANT_REVOKED', 'revoked', { metadata: { a: 'b' } }));
    await expect(sends[2]).rejects.toMatchObject({
      reason: 'GRANT_REVOKED',
      message: 'revoked',
      metadata: { a: 'b' },
    });
    expect(input.taken).toBe(1);
    fourth?.take();
    first?.take();
    expect(await sends[0]).toBe(5);
    second?.refuse(new TypeError('a defect'));
    await expect(sends[1]).rejects.toMatchObject({ reason: 'SUPERVISOR_UNAVAILABLE' });
    expect(await sends[3]).toBe(5);
  });

  it('holds back no more than a terminal’s queue when the supervisor does not read', async () => {
    await using over = await served(fakeSupervisor({ attach: async () => new FakeChannel() }));
    await using input = await over.supervisor.attach(key, agent);
    const sends = Array.from({ length: 17 }, () => input.send(Buffer.alloc(65_536), lease));
    for (const send of sends) send.catch(() => {});
    await expect(sends.at(-1)).rejects.toMatchObject({ reason: 'INPUT_QUEUE_FULL' });
    const small = Array.from({ length: 20_000 }, () => input.send(bytes('x'), lease));
    const refused = await Promise.allSettled(small.slice(-1));
    expect(refused).toMatchObject([{ reason: { reason: 'INPUT_QUEUE_FULL' } }]);
    for (const send of small) send.catch(() => {});
  });

  it('ends the attachment once, and refuses what is sent after it', async () => {
    const channel = new FakeChannel();
    await using over = await served(fakeSupervisor({ attach: async () => channel }));
    const input = await over.supervisor.attach(key, agent);
    const send = input.send(bytes('x'), lease);
    await channel.arrived(1);
    await Promise.all([input[Symbol.asyncDispose](), input[Symbol.asyncDispose]()]);
    expect(channel.disposed).toBe(1);
    await expect(input.send(bytes('y'), lease)).rejects.toMatchObject({
      reason: 'SUPERVISOR_UNAVAILABLE',
    });
    channel.sent[0]?.take();
    expect(await send).toBe(1);
  });

  it('ends the attachment when the client is lost between greeting and answer', async () => {
    const channel = new FakeChannel();
    let attach = () => {};
    const attaching = new Promise<void>((resolve) => {
      attach = resolve;
    });
    let disposed = () => {};
    const ended = new Promise<void>((resolve) => {
      disposed = resolve;
    });
    channel[Symbol.asyncDispose] = async () => disposed();
    await using over = await served(
      fakeSupervisor({
        attach: async () => {
          attach();
          await peer.closed;
          return channel;
        },
      }),
    );
    const peer = await rawPeer(over.path);
    greetForInput(peer).catch(() => {});
    await attaching;
    peer.socket.destroy();
    await ended;
  });

  it('acknowledges in one message what was settled together, and nothing twice', async () => {
    const channel = new FakeChannel();
    await using over = await served(fakeSupervisor({ attach: async () => channel }));
    const peer = await rawPeer(over.path);
    await greetForInput(peer);
    const acks = async (index: number) => fromBinary(InputAckSchema, await peer.body(index));
    for (const number of [1, 2, 3, 4]) {
      peer.socket.write(chunk({ number, data: bytes('x'), notAfter: 9e15 }));
    }
    await channel.arrived(4);
    const [first, second, third, fourth] = channel.sent;
    first?.take();
    second?.take();
    expect(await acks(1)).toMatchObject({ through: 2, taken: 2, failed: 0 });
    third?.take();
    fourth?.refuse(new GranttyError('GRANT_REVOKED', 'revoked'));
    expect(await acks(2)).toMatchObject({ through: 4, taken: 3, failed: 4 });
    for (const number of [5, 6, 7]) {
      peer.socket.write(chunk({ number, data: bytes('x'), notAfter: 9e15 }));
      await channel.arrived(number);
      channel.sent[number - 1]?.take();
      expect(await acks(number - 2)).toMatchObject({ through: number, failed: 0 });
    }
    peer.socket.write(chunk({ end: true }));
    await peer.closed;
    expect(await acks(6)).toMatchObject({ ended: true });
    expect(peer.bodies).toHaveLength(7);
  });
});

function greetForInput(peer: RawPeer) {
  return greet(peer, { purpose: { case: 'input', value: { key, ...agent } } });
}

function chunk(fields: MessageInitShape<typeof InputChunkSchema>): Uint8Array {
  return sizeDelimitedEncode(InputChunkSchema, create(InputChunkSchema, fields));
}

describe('an input connection that keeps no protocol', () => {
  it.each([
    ['garbage', Buffer.from('\x04\xff\xff\xff\xff')],
    ['a gap in the numbers', chunk({ number: 2, data: bytes('x') })],
    ['a message that is too large', Buffer.from([0x81, 0x80, 0x40])],
    ['input after its end', Buffer.concat([chunk({ end: true }), chunk({ number: 1 })])],
  ])('is closed after %s and its attachment ended', async (_, hostile) => {
    const channel = new FakeChannel();
    await using over = await served(fakeSupervisor({ attach: async () => channel }));
    const peer = await rawPeer(over.path);
    expect(await greetForInput(peer)).toMatchObject({ case: 'attached' });
    peer.socket.write(hostile);
    await peer.closed;
    await over[Symbol.asyncDispose]();
    expect(channel.disposed).toBeGreaterThan(0);
    expect(channel.sent).toEqual([]);
  });

  it('has no effect with half a chunk, and takes the whole ones before it', async () => {
    const channel = new FakeChannel();
    await using over = await served(fakeSupervisor({ attach: async () => channel }));
    const peer = await rawPeer(over.path);
    await greetForInput(peer);
    peer.socket.write(chunk({ number: 1, data: bytes('whole'), notAfter: 9e15 }));
    await channel.arrived(1);
    channel.sent[0]?.take();
    const ack = fromBinary(InputAckSchema, await peer.body(1));
    expect(ack).toMatchObject({ through: 1, taken: 5, failed: 0 });
    peer.socket.end(chunk({ number: 2, data: bytes('half of it') }).subarray(0, 8));
    await peer.closed;
    await over[Symbol.asyncDispose]();
    expect(channel.sent.map(({ data }) => data.toString())).toEqual(['whole']);
    expect(channel.disposed).toBe(1);
  });
});

describe('a server that is lost in the middle of its input', () => {
  it('leaves nothing queued: what was taken is counted, the rest is never written', async () => {
    await using registry = await startRegistry();
    const behind = registry.supervisor;
    const log = recordingLog();
    const { key: terminal, pid } = await createPrinting(behind, deaf, 'ready');
    await using next = await served(behind);
    const lost = await served(behind, { log });
    const input = await lost.supervisor.attach(terminal, agent);
    const sends = Array.from({ length: 3 }, () => input.send(Buffer.alloc(65_536, 97), lease));
    const failed = Promise.allSettled(sends);
    // The terminal shows the attachment as writing once input has arrived.
    await untilWriting(next.supervisor, terminal);
    const write = lost.supervisor.write(terminal, { data: Buffer.alloc(65_536, 98), lease });
    write.catch(() => {});
    // Answered behind the write, so that has arrived.
    await lost.supervisor.get(terminal);
    await lost[Symbol.asyncDispose]();
    for (const result of await failed) {
      expect(result).toMatchObject({ reason: { reason: 'SUPERVISOR_UNAVAILABLE' } });
    }
    await expect(write).rejects.toMatchObject({ reason: 'SUPERVISOR_UNAVAILABLE' });
    expect(await log.said('input of a lost server was dropped')).toMatchObject({
      attachmentId: input.attachmentId,
    });

    const { attachmentId } = input;
    await using resumed = await next.supervisor.attach(terminal, { ...agent, attachmentId });
    expect(resumed.resumed).toBe(true);
    const { taken } = resumed;
    expect(taken).toBeGreaterThan(0);
    expect(taken).toBeLessThan(65_536);

    // The program reads again: what it gets is what was counted, then what the next server sends.
    const { items } = await next.supervisor.openOutput(terminal, AbortSignal.timeout(10_000));
    const printed = outputHolds(items, 'end');
    process.kill(pid, 'SIGUSR1');
    expect(await resumed.send(bytes('end'), lease)).toBe(taken + 3);
    expect(await printed).toBe(`${'a'.repeat(taken)}end`);
    await behind.kill(terminal, { lease });
  });
});

async function untilWriting(
  supervisor: Awaited<ReturnType<typeof startRegistry>>['supervisor'],
  terminal: typeof key,
): Promise<void> {
  for (;;) {
    const attachments = (await supervisor.get(terminal))?.attachments ?? [];
    if (attachments.some(({ mode }) => mode === 'read-write')) return;
  }
}
