import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { GranttyError } from '../../src/core/errors.js';
import { MAX_INPUT_QUEUE_BYTES } from '../../src/core/limits.js';
import { InputQueue, type Timer } from '../../src/pty/inputQueue.js';

const allow = () => undefined;
const again = Object.assign(new Error('try again'), { code: 'EAGAIN' });
const bytes = (text: string) => Buffer.from(text);

/** Time that passes only when a test lets it. */
function testClock() {
  let now = 0;
  let due: { at: number; action: () => void }[] = [];
  const timer: Timer = (action, ms) => {
    const entry = { at: now + ms, action };
    due.push(entry);
    return () => {
      due = due.filter((other) => other !== entry);
    };
  };
  const advance = (ms: number) => {
    const end = now + ms;
    for (;;) {
      const next = due.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      due = due.filter((entry) => entry !== next);
      now = next.at;
      next.action();
    }
    now = end;
  };
  return { timer, advance, waiting: () => due.length };
}

/** A line discipline that takes what `room` allows. */
function testSink(room: { bytes: number }) {
  const taken: Buffer[] = [];
  let attempts = 0;
  const write = (data: Uint8Array, offset: number) => {
    attempts += 1;
    const count = Math.min(room.bytes, data.length - offset);
    if (count === 0) throw again;
    room.bytes -= count;
    taken.push(Buffer.from(data.subarray(offset, offset + count)));
    return count;
  };
  return { write, text: () => Buffer.concat(taken).toString(), attempts: () => attempts };
}

describe('an input queue', () => {
  it('writes at once what can be taken', async () => {
    const sink = testSink({ bytes: 100 });
    const queue = new InputQueue(sink.write, testClock().timer);
    const sent = queue.send(bytes('ls\n'), allow);
    expect(sink.text()).toBe('ls\n');
    await sent;
    expect(queue.queuedBytes).toBe(0);
  });

  it('backs off below 200 attempts a second while nothing is taken (case 11)', () => {
    const clock = testClock();
    const sink = testSink({ bytes: 0 });
    const queue = new InputQueue(sink.write, clock.timer);
    queue.send(bytes('x'), allow).catch(() => {});
    clock.advance(1_000);
    expect(sink.attempts()).toBeLessThanOrEqual(20);
    expect(clock.waiting()).toBe(1);
    for (let more = 0; more < 1_000; more += 1) queue.send(bytes('y'), allow).catch(() => {});
    const before = sink.attempts();
    clock.advance(1_000);
    expect(sink.attempts() - before).toBeLessThanOrEqual(20);
  });

  it('stays at or below 200 attempts a second while a byte is taken now and then', () => {
    const clock = testClock();
    const room = { bytes: 0 };
    const sink = testSink(room);
    const queue = new InputQueue(sink.write, clock.timer);
    queue.send(Buffer.alloc(60_000), allow).catch(() => {});
    for (let ms = 0; ms < 1_000; ms += 1) {
      room.bytes = 1;
      clock.advance(1);
    }
    expect(sink.attempts()).toBeGreaterThan(100);
    expect(sink.attempts()).toBeLessThanOrEqual(201);
  });

  it('goes on promptly when input is taken again', async () => {
    const clock = testClock();
    const room = { bytes: 0 };
    const sink = testSink(room);
    const queue = new InputQueue(sink.write, clock.timer);
    const sent = queue.send(bytes('hello'), allow);
    clock.advance(10_000);
    room.bytes = 5;
    clock.advance(100);
    await sent;
    expect(sink.text()).toBe('hello');
    expect(clock.waiting()).toBe(0);
  });

  it('refuses what would exceed its bound, takes no part of it, and accepts again later', async () => {
    const clock = testClock();
    const room = { bytes: 0 };
    const sink = testSink(room);
    const queue = new InputQueue(sink.write, clock.timer);
    const frame = Buffer.alloc(64 * 1024, 'a');
    const sent: Promise<void>[] = [];
    for (let count = 0; count < MAX_INPUT_QUEUE_BYTES / frame.length; count += 1) {
      sent.push(queue.send(frame, allow));
    }
    expect(queue.queuedBytes).toBe(MAX_INPUT_QUEUE_BYTES);
    await expect(queue.send(bytes('b'), allow)).rejects.toMatchObject({
      reason: 'INPUT_QUEUE_FULL',
    });
    room.bytes = Number.MAX_SAFE_INTEGER;
    clock.advance(100);
    await Promise.all(sent);
    await queue.send(bytes('c'), allow);
    expect(sink.text().endsWith('ac')).toBe(true);
    expect(sink.text()).toHaveLength(MAX_INPUT_QUEUE_BYTES + 1);
  });

  it('asks for leave right before each attempt, and ends a frame where it is refused', async () => {
    const clock = testClock();
    const room = { bytes: 2 };
    const sink = testSink(room);
    const queue = new InputQueue(sink.write, clock.timer);
    const revoked = new GranttyError('GRANT_REVOKED', 'revoked');
    let asked = 0;
    let refusal: GranttyError | undefined;
    const taken: number[] = [];
    const first = queue.send(
      bytes('first'),
      () => {
        asked += 1;
        return refusal;
      },
      (count) => taken.push(count),
    );
    const second = queue.send(bytes('second'), allow);
    expect(asked).toBe(2);
    refusal = revoked;
    room.bytes = 100;
    clock.advance(5);
    await expect(first).rejects.toBe(revoked);
    await second;
    expect(asked).toBe(3);
    expect(taken).toEqual([2]);
    expect(sink.text()).toBe('fisecond');
    expect(queue.queuedBytes).toBe(0);
  });

  it('refuses at once what has no leave, also behind frames that wait', async () => {
    const queue = new InputQueue(testSink({ bytes: 0 }).write, testClock().timer);
    queue.send(bytes('waits'), allow).catch(() => {});
    const revoked = new GranttyError('GRANT_REVOKED', 'revoked');
    await expect(queue.send(bytes('x'), () => revoked)).rejects.toBe(revoked);
    expect(queue.queuedBytes).toBe(5);
  });

  it('drops queued frames that are refused on asking again, and keeps the others in order', async () => {
    const clock = testClock();
    const room = { bytes: 0 };
    const sink = testSink(room);
    const queue = new InputQueue(sink.write, clock.timer);
    const revoked = new GranttyError('GRANT_REVOKED', 'revoked');
    let refusal: GranttyError | undefined;
    const sent = [
      queue.send(bytes('a'), () => refusal),
      queue.send(bytes('b'), allow),
      queue.send(bytes('c'), () => refusal),
      queue.send(bytes('d'), allow),
    ];
    refusal = revoked;
    queue.dropRefused();
    expect(queue.queuedBytes).toBe(2);
    refusal = undefined;
    room.bytes = 100;
    clock.advance(5);
    expect(await Promise.allSettled(sent)).toMatchObject([
      { status: 'rejected', reason: revoked },
      { status: 'fulfilled' },
      { status: 'rejected', reason: revoked },
      { status: 'fulfilled' },
    ]);
    expect(sink.text()).toBe('bd');
  });

  it('rejects all frames, and all that follow, once it has ended', async () => {
    const clock = testClock();
    const queue = new InputQueue(testSink({ bytes: 0 }).write, clock.timer);
    const exited = new GranttyError('TERMINAL_EXITED', 'gone');
    const sent = queue.send(bytes('a'), allow);
    queue.end(exited);
    await expect(sent).rejects.toBe(exited);
    await expect(queue.send(bytes('b'), allow)).rejects.toBe(exited);
    expect(queue.queuedBytes).toBe(0);
    expect(clock.waiting()).toBe(0);
  });

  it('ends when the terminal is gone', async () => {
    const failed = Object.assign(new Error('gone'), { code: 'EIO' });
    const queue = new InputQueue(() => {
      throw failed;
    }, testClock().timer);
    const sent = [queue.send(bytes('a'), allow), queue.send(bytes('b'), allow)];
    for (const frame of sent) {
      await expect(frame).rejects.toMatchObject({ reason: 'TERMINAL_EXITED' });
    }
  });

  it('lets a callback send more without breaking the order', async () => {
    const sink = testSink({ bytes: 100 });
    const queue = new InputQueue(sink.write, testClock().timer);
    const inner: Promise<void>[] = [];
    await queue.send(bytes('a'), allow, () => inner.push(queue.send(bytes('b'), allow)));
    await Promise.all(inner);
    expect(sink.text()).toBe('ab');
  });

  it('keeps frames whole and in order whatever the line discipline takes', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ minLength: 1, maxLength: 20 }), { maxLength: 20 }),
        fc.array(fc.nat(7), { minLength: 1, maxLength: 50 }),
        async (frames, rooms) => {
          const clock = testClock();
          const room = { bytes: rooms[0] ?? 0 };
          const sink = testSink(room);
          const queue = new InputQueue(sink.write, clock.timer);
          let told = 0;
          const sent = frames.map((frame) =>
            queue.send(bytes(frame), allow, (count) => {
              told += count;
            }),
          );
          const expected = frames.join('');
          for (const more of rooms) {
            expect(expected.startsWith(sink.text().replace(/\ufffd+$/, ''))).toBe(true);
            expect(told + queue.queuedBytes).toBe(Buffer.byteLength(expected));
            room.bytes += more;
            clock.advance(100);
          }
          room.bytes = Number.MAX_SAFE_INTEGER;
          clock.advance(100);
          await Promise.all(sent);
          expect(sink.text()).toBe(expected);
          expect(told).toBe(Buffer.byteLength(expected));
        },
      ),
    );
  });
});
