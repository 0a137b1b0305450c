import { create } from '@bufbuild/protobuf';
import { sizeDelimitedEncode } from '@bufbuild/protobuf/wire';
import { RequestSchema } from '../../../src/gen/internal/grantty/internal/v1/control_pb.js';
import type { TerminalChange } from '../../../src/supervisor/api.js';
import { lease, name, owner } from '../../support/registry.js';
import { served } from '../../support/socketRegistry.js';
import { fakeSnapshot, fakeSupervisor, recordingLog } from './fakeSupervisor.js';
import { greet, rawPeer } from './rawPeer.js';

const key = { owner, id: name('a') };
const never = new AbortController().signal;

describe('calls over the supervisor’s socket', () => {
  it('answers calls as they finish, and each its own', async () => {
    const finish = new Map<string, () => void>();
    await using over = await served(
      fakeSupervisor({
        get: ({ id }) => new Promise((resolve) => finish.set(id, () => resolve(fakeSnapshot(id)))),
        exited: async ({ id }) => {
          finish.get(id)?.();
          return fakeSnapshot(id);
        },
      }),
    );
    const { supervisor } = over;
    const order: string[] = [];
    const ids = ['a', 'b', 'c'].map(name);
    const gets = ids.map(async (id) => {
      const found = await supervisor.get({ owner, id });
      order.push(id);
      expect(found?.record.id).toBe(id);
    });
    for (const id of ids.toReversed()) await supervisor.exited({ owner, id }, never);
    await Promise.all(gets);
    expect(order).toEqual(['c', 'b', 'a']);
  });

  it('ends a call on the other side when its signal fires', async () => {
    let aborted = () => {};
    const ended = new Promise<void>((resolve) => {
      aborted = resolve;
    });
    let begun = () => {};
    const began = new Promise<void>((resolve) => {
      begun = resolve;
    });
    await using over = await served(
      fakeSupervisor({
        exited: (_, signal) =>
          new Promise((_resolve, reject) => {
            begun();
            signal.addEventListener('abort', () => {
              aborted();
              reject(signal.reason);
            });
          }),
        get: async () => undefined,
      }),
    );
    const stop = new AbortController();
    const wait = over.supervisor.exited(key, stop.signal);
    await began;
    const reason = new Error('enough');
    stop.abort(reason);
    await expect(wait).rejects.toBe(reason);
    await ended;
    expect(await over.supervisor.get(key)).toBeUndefined();
  });

  it('tells a defect of the supervisor from its refusals, and keeps its text to the log', async () => {
    const log = recordingLog();
    const defect = new TypeError('/secret/path');
    await using over = await served(
      fakeSupervisor({
        kill: () => Promise.reject(defect),
        info: () => {
          throw defect;
        },
      }),
      { log },
    );
    const unavailable = {
      reason: 'SUPERVISOR_UNAVAILABLE',
      message: expect.not.stringContaining('secret'),
    };
    await expect(over.supervisor.kill(key, { lease })).rejects.toMatchObject(unavailable);
    await expect(over.supervisor.info()).rejects.toMatchObject(unavailable);
    expect(log.lines.filter(({ level }) => level === 'error').map(({ fields }) => fields)).toEqual([
      { err: defect },
      { err: defect },
    ]);
  });

  it('asks for a record once, and again when another has taken its place', async () => {
    let terminal = fakeSnapshot('a', 'first');
    let gets = 0;
    await using over = await served(
      fakeSupervisor({
        get: async () => {
          gets += 1;
          return terminal;
        },
      }),
    );
    const first = await over.supervisor.get(key);
    expect(first).toEqual(terminal);
    // What is no part of the record is as it is now.
    const attachment = {
      attachmentId: 'x',
      kind: 'human',
      subject: 's',
      since: 1,
      mode: 'read',
    } as const;
    terminal = { ...terminal, nextSeq: 9, attachments: [attachment], paused: 'log-quota' };
    const second = await over.supervisor.get(key);
    expect(second).toEqual(terminal);
    expect(second?.record).toBe(first?.record);
    terminal = fakeSnapshot('a', 'second');
    const both = await Promise.all([over.supervisor.get(key), over.supervisor.get(key)]);
    expect(both).toEqual([terminal, terminal]);
    expect(gets).toBe(4);
  });

  it('lists a part', async () => {
    const asked: unknown[] = [];
    await using over = await served(
      fakeSupervisor({
        list: async (...args) => {
          asked.push(args);
          return [];
        },
      }),
    );
    const after = { owner: key.owner, id: key.id };
    await over.supervisor.list(undefined, { limit: 7, after });
    await over.supervisor.list(key.owner, { limit: 1 });
    await over.supervisor.list(key.owner);
    expect(asked).toEqual([
      [undefined, { limit: 7, after }],
      [key.owner, { limit: 1 }],
      [key.owner, undefined],
    ]);
  });

  it('lists and follows more terminals than fit one message', async () => {
    const terminals = Array.from({ length: 5_000 }, (_, index) =>
      fakeSnapshot(`t${index}`, 'x'.repeat(300)),
    );
    await using over = await served(
      fakeSupervisor({
        list: async () => terminals,
        async *changes(cursor) {
          yield { kind: 'snapshot', terminals, cursor: `${cursor}1` };
          yield { kind: 'removed', tuple: fakeSnapshot('gone').record, uid: 'u', cursor: '2' };
        },
      }),
    );
    expect(await over.supervisor.list()).toEqual(terminals);
    const changes: TerminalChange[] = [];
    for await (const change of over.supervisor.changes('from ', never)) changes.push(change);
    expect(changes.map(({ kind, cursor }) => [kind, cursor])).toEqual([
      ['snapshot', 'from 1'],
      ['removed', '2'],
    ]);
    expect(changes[0]).toMatchObject({ terminals: { length: 5_000 } });
  });

  it('ends a follower who stays behind, and says so', async () => {
    let cancelled = () => {};
    const ended = new Promise<void>((resolve) => {
      cancelled = resolve;
    });
    const terminal = fakeSnapshot('a');
    await using over = await served(
      fakeSupervisor({
        async *changes(_, signal) {
          try {
            for (let turn = 0; !signal.aborted; turn += 1) {
              yield { kind: 'changed', terminal, cursor: String(turn) };
            }
          } finally {
            cancelled();
          }
        },
      }),
    );
    const follower = over.supervisor.changes(undefined, never)[Symbol.asyncIterator]();
    expect(await follower.next()).toMatchObject({ value: { kind: 'changed', cursor: '0' } });
    await ended;
    let last = 0;
    const rest = async () => {
      for (;;) {
        const { done, value } = await follower.next();
        if (done) return;
        last += 1;
        expect(value.cursor).toBe(String(last));
      }
    };
    await expect(rest()).rejects.toMatchObject({ reason: 'SUPERVISOR_UNAVAILABLE' });
    expect(last).toBeGreaterThan(4_000);
  });

  it('refuses a call that does not fit one message, and an answer that does not, and goes on', async () => {
    const huge = 'x'.repeat(1024 * 1024);
    await using over = await served(
      fakeSupervisor({
        get: async ({ id }) => fakeSnapshot(id, id === 'huge' ? huge : ''),
      }),
    );
    const tooLarge = {
      reason: 'SUPERVISOR_UNAVAILABLE',
      message: expect.stringContaining('does not fit'),
    };
    await expect(over.supervisor.get({ ...key, uid: huge })).rejects.toMatchObject(tooLarge);
    await expect(over.supervisor.get({ owner, id: name('huge') })).rejects.toMatchObject(tooLarge);
    expect((await over.supervisor.get(key))?.record.id).toBe('a');
  });

  it('fences any number of leases', async () => {
    const fenced: string[] = [];
    await using over = await served(
      fakeSupervisor({
        fence: async (ids) => {
          fenced.push(...ids);
        },
      }),
    );
    const ids = Array.from({ length: 3_000 }, (_, index) => `${'✓'.repeat(400)}${index}`);
    await over.supervisor.fence(ids);
    expect(fenced.sort()).toEqual(ids.sort());
    await over.supervisor.fence([]);
  });
});

describe('a control connection that keeps no protocol', () => {
  const request = (id: number) =>
    sizeDelimitedEncode(
      RequestSchema,
      create(RequestSchema, { id, call: { case: 'exited', value: { key } } }),
    );
  const waiting = () =>
    fakeSupervisor({ exited: () => new Promise(() => {}), get: async () => undefined });

  it.each([
    ['garbage', Buffer.from('\x05\xff\xff\xff\xff\xff and more')],
    ['a message that is too large', Buffer.from([0x81, 0x80, 0x40])],
    ['an id twice', Buffer.concat([request(7), request(7)])],
  ])('is closed after %s, and others live', async (_, bytes) => {
    const log = recordingLog();
    await using over = await served(waiting(), { log });
    const peer = await rawPeer(over.path);
    expect(await greet(peer)).toMatchObject({ case: 'control' });
    peer.socket.write(bytes);
    await peer.closed;
    expect(await log.said('the server has gone')).toMatchObject({ err: expect.anything() });
    expect(await over.supervisor.get(key)).toBeUndefined();
  });

  it('is closed when it ends within a message', async () => {
    const log = recordingLog();
    await using over = await served(waiting(), { log });
    const peer = await rawPeer(over.path);
    await greet(peer);
    peer.socket.end(request(1).subarray(0, 6));
    await peer.closed;
    expect(await log.said('the server has gone')).toMatchObject({
      err: { message: expect.stringContaining('half a message') },
      unanswered: 0,
    });
  });

  it('gets answers to requests without a call, unknown words and names that are none', async () => {
    await using over = await served(waiting());
    const peer = await rawPeer(over.path);
    await greet(peer);
    const send = (call: Parameters<typeof create<typeof RequestSchema>>[1]) =>
      peer.socket.write(sizeDelimitedEncode(RequestSchema, create(RequestSchema, call)));
    send({ id: 1 });
    send({ id: 2, call: { case: 'get', value: { key: { owner: 'o', id: '../../etc' } } } });
    send({ id: 3, call: { case: 'get', value: {} } });
    send({ id: 4, call: { case: 'signal', value: { key, name: 'SIGNOPE', lease } } });
    send({ id: 5, call: { case: 'write', value: { key, data: Buffer.from('x') } } });
    const answers = await Promise.all([1, 2, 3, 4, 5].map((index) => peer.body(index)));
    for (const answer of answers) expect(answer.toString()).toContain('SUPERVISOR_UNAVAILABLE');
    peer.socket.destroy();
  });
});
