import { type Operation, SessionSend } from '../../src/server/sessionSend.js';
import { SessionSends } from '../../src/server/sessionSends.js';
import type { TerminalSendRead, TerminalSendResult } from '../../src/session/sessionTypes.js';
import { gate, settledResult } from '../session/fakeBackend.js';
import { ManualClock } from './manualClock.js';

const origin = { lastSeq: 7, logEpoch: 1 };
const TEN_MINUTES = 600_000;

/** What a test prints and how it ends. */
class FakeOperation implements Operation {
  readonly typed = gate();
  readonly started = this.typed.opened.then(() => ({ lastSeq: 9 }));
  readonly #ended = gate();
  #output: TerminalSendRead = { delta: '', truncated: false };
  #wake = () => {};
  #result: TerminalSendResult = settledResult;
  readonly done = this.#ended.opened.then(() => this.#result);

  print(delta: string, truncated = false): void {
    this.#output = { delta, truncated };
    this.#wake();
  }

  changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  readOutput(): TerminalSendRead {
    const output = this.#output;
    this.#output = { delta: '', truncated: false };
    return output;
  }

  cancel(): boolean {
    return false;
  }

  settle(result: Partial<TerminalSendResult> = {}): void {
    this.#result = { ...settledResult, ...result };
    this.#ended.open();
  }

  fail(error: unknown): void {
    this.#ended.fail(error);
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('a send as its readers see it', () => {
  let clock: ManualClock;
  let operation: FakeOperation;
  let send: SessionSend;
  beforeEach(() => {
    clock = new ManualClock();
    operation = new FakeOperation();
    send = new SessionSend(operation, origin, clock);
  });

  async function printed(text: string, truncated = false): Promise<void> {
    operation.print(text, truncated);
    await turn();
    clock.advance(100);
    await turn();
  }

  it('has started when its text was typed', async () => {
    operation.typed.open();
    expect(await send.started).toBe(9);
  });

  it('has started, from where it was decided, when it settled before its text was taken', async () => {
    operation.settle({ waitReason: 'timeout' });
    expect(await send.started).toBe(origin.lastSeq);
  });

  it('has not started when its text could not be typed', async () => {
    operation.typed.fail(new Error('refused'));
    await expect(send.started).rejects.toThrow('refused');
  });

  it('numbers what is printed, and tells who waits', async () => {
    expect(send.next(0)).toBeUndefined();
    const changed = send.changed;
    await printed('one');
    await changed;
    await printed('two');
    expect(send.next(0)).toEqual({
      kind: 'delta',
      delta: { index: 1, text: 'one', truncated: false },
    });
    expect(send.next(1)).toMatchObject({ delta: { index: 2, text: 'two' } });
    expect(send.next(2)).toBeUndefined();
  });

  it('leaves to the result what is printed right before it', async () => {
    operation.print('late');
    await turn();
    operation.settle({ viewport: 'late' });
    await turn();
    clock.advance(100);
    await turn();
    expect(send.next(0)).toEqual({
      kind: 'result',
      result: { ...settledResult, viewport: 'late' },
    });
    expect(send.active).toBe(false);
  });

  it('gives its failure to every reader', async () => {
    await printed('one');
    operation.fail(new Error('lost'));
    await turn();
    expect(send.next(0)).toMatchObject({ kind: 'delta' });
    expect(() => send.next(1)).toThrow('lost');
    expect(() => send.next(1)).toThrow('lost');
  });

  it('cuts long output at 64 KiB, no character in two', async () => {
    const text = '\u6f22'.repeat(50_000);
    await printed(text, true);
    let joined = '';
    let index = 0;
    for (let step = send.next(0); step?.kind === 'delta'; step = send.next(index)) {
      expect(Buffer.byteLength(step.delta.text)).toBeLessThanOrEqual(64 * 1024);
      expect(step.delta.truncated).toBe(index === 0);
      joined += step.delta.text;
      ({ index } = step.delta);
    }
    expect(joined).toBe(text);
    expect(index).toBe(3);
  });

  it('keeps the last MiB, and tells who comes too late for the rest', async () => {
    for (let i = 0; i < 30; i += 1) await printed('x'.repeat(60_000));
    expect(send.keptBytes).toBeLessThanOrEqual(1024 * 1024);
    const step = send.next(0);
    if (step?.kind !== 'delta') throw new Error('there is a delta');
    expect(step.delta.index).toBeGreaterThan(1);
    expect(step.delta.truncated).toBe(true);
    expect(send.next(step.delta.index)).toMatchObject({ delta: { truncated: false } });
  });
});

describe('the sends of one session', () => {
  let clock: ManualClock;
  let sends: SessionSends;
  beforeEach(() => {
    clock = new ManualClock();
    sends = new SessionSends(clock);
  });

  async function settledSend(result: Partial<TerminalSendResult> = {}, key?: string) {
    const operation = new FakeOperation();
    operation.typed.open();
    const mark = key === undefined ? undefined : { key, bodyHash: 'body' };
    const send = sends.begin(mark, origin, () => operation);
    operation.settle(result);
    await turn();
    return send;
  }

  it('names the active one', async () => {
    await settledSend();
    expect(sends.activeId).toBeUndefined();
    const send = sends.begin(undefined, origin, () => new FakeOperation());
    expect(sends.activeId).toBe(send.id);
  });

  it('keeps a settled one for ten minutes, and for longer while no other begins', async () => {
    const first = await settledSend();
    clock.advance(TEN_MINUTES - 1);
    const second = await settledSend();
    expect(sends.get(first.id)).toBe(first);
    clock.advance(10 * TEN_MINUTES);
    expect(sends.get(second.id)).toBe(second);
    await settledSend();
    expect(sends.get(first.id)).toBeUndefined();
    expect(sends.get(second.id)).toBeUndefined();
  });

  it('finds the send of a repeated request, for ten minutes after it has settled', async () => {
    const first = await settledSend({}, 'k');
    const never = () => {
      throw new Error('typed again');
    };
    expect(sends.begin({ key: 'k', bodyHash: 'body' }, origin, never)).toBe(first);
    expect(() => sends.begin({ key: 'k', bodyHash: 'other' }, origin, never)).toThrow(
      'different request',
    );
    clock.advance(TEN_MINUTES + 1);
    expect(await settledSend({}, 'k')).not.toBe(first);
  });

  it('forgets one whose text could not be typed, so that a retry tries again', async () => {
    const mark = { key: 'k', bodyHash: 'body' };
    const failed = new FakeOperation();
    failed.typed.fail(new Error('queue full'));
    failed.done.catch(() => {});
    const first = sends.begin(mark, origin, () => failed);
    failed.fail(new Error('queue full'));
    await turn();
    expect(sends.get(first.id)).toBeUndefined();
    expect(sends.begin(mark, origin, () => new FakeOperation())).not.toBe(first);
  });

  it('drops the text of the oldest above 4 MiB, and says so', async () => {
    const viewport = 'x'.repeat(256 * 1024);
    const all: SessionSend[] = [];
    for (let i = 0; i < 20; i += 1) all.push(await settledSend({ viewport }));
    const bytes = all.reduce((sum, { keptBytes }) => sum + keptBytes, 0);
    expect(bytes).toBeLessThanOrEqual(4 * 1024 * 1024 + viewport.length);
    expect(all[0]?.next(0)).toMatchObject({ result: { viewport: '', truncated: true } });
    expect(all.at(-1)?.next(0)).toMatchObject({ result: { viewport, truncated: false } });
  });
});
