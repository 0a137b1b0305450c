import fc from 'fast-check';
import type { OutputEvent, TerminalEvent } from '../../src/core/event.js';
import { MAX_EVENT_DATA_BYTES, MAX_UNLOGGED_BYTES } from '../../src/core/limits.js';
import type { LiveItem } from '../../src/supervisor/api.js';
import { type OutputLog, OutputPipeline } from '../../src/supervisor/outputPipeline.js';

/** A log in memory whose appends end when the test lets them. */
class MemoryLog implements OutputLog {
  readonly events: TerminalEvent[] = [];
  appends = 0;
  /** Appends that wait for `release`. */
  readonly held: Array<() => void> = [];
  hold = false;
  failures = 0;

  get nextSeq(): number {
    return this.events.length + 1;
  }

  async append(events: readonly TerminalEvent[]): Promise<void> {
    this.appends += 1;
    if (this.hold) await new Promise<void>((resolve) => this.held.push(resolve));
    if (this.failures > 0) {
      this.failures -= 1;
      throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
    }
    this.events.push(...events);
  }

  async sync(): Promise<void> {}

  release(): void {
    this.hold = false;
    for (const resolve of this.held.splice(0)) resolve();
  }
}

function start(log = new MemoryLog()) {
  const published: LiveItem[] = [];
  const pauses: boolean[] = [];
  const failures: boolean[] = [];
  const pipeline = new OutputPipeline({
    log,
    instance: 1,
    size: { cols: 80, rows: 24 },
    durable: async () => {},
    publish: (item) => {
      if (item.kind === 'events') {
        for (const { seq } of item.events) expect(seq).toBeLessThan(log.nextSeq);
      }
      published.push(item);
    },
    pause: (paused) => pauses.push(paused),
    unwritable: (failure) => failures.push(failure !== undefined),
    nowMicros: () => 1_735_689_601_000_000,
  });
  return { log, pipeline, published, pauses, failures };
}

function outputOf(events: readonly TerminalEvent[]): Buffer {
  return Buffer.concat(
    events.filter((event): event is OutputEvent => event.type === 'pty.output').map((e) => e.data),
  );
}

function publishedEvents(items: readonly LiveItem[]): TerminalEvent[] {
  return items.flatMap((item) => (item.kind === 'events' ? item.events : []));
}

describe('the output pipeline', () => {
  it('puts what is read after a cut into later events, whatever waits and however it is sized', async () => {
    const step = fc.oneof(
      fc
        .uint8Array({ minLength: 1, maxLength: 9 })
        .map((data) => ({ kind: 'read', data }) as const),
      fc.nat(500).map((cols) => ({ kind: 'resized', size: { cols: cols + 1, rows: 1 } }) as const),
      fc.constant({ kind: 'cut' } as const),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), fc.nat(30), async (steps, releaseAt) => {
        const log = new MemoryLog();
        log.hold = true;
        const { pipeline } = start(log);
        const cuts: { readonly seq: number; readonly bytes: number }[] = [];
        let bytes = 0;
        for (const [at, taken] of steps.entries()) {
          if (at === releaseAt) {
            log.release();
            await new Promise((resolve) => setImmediate(resolve));
          }
          if (taken.kind === 'resized') pipeline.resized(taken.size);
          else if (taken.kind === 'cut') cuts.push({ seq: pipeline.cut(), bytes });
          else {
            pipeline.push(taken.data);
            bytes += taken.data.length;
          }
        }
        log.release();
        await pipeline.finish({ exitCode: 0 });
        for (const cut of cuts) {
          const through = log.events.filter(({ seq }) => seq <= cut.seq);
          expect(outputOf(through).length).toBe(cut.bytes);
        }
      }),
    );
  });

  it('gives any chunking of the same bytes as the same output, in order, without gap', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ minLength: 1, maxLength: 4096 }), { maxLength: 60 }),
        async (chunks) => {
          const { log, pipeline, published } = start();
          for (const chunk of chunks) pipeline.push(chunk);
          const exit = await pipeline.finish({ exitCode: 0 });
          expect(outputOf(log.events).equals(Buffer.concat(chunks))).toBe(true);
          expect(log.events.map(({ seq }) => seq)).toEqual(log.events.map((_, i) => i + 1));
          expect(exit).toEqual(log.events.at(-1));
          expect(publishedEvents(published)).toEqual(log.events.slice(0, -1));
        },
      ),
      { numRuns: 100 },
    );
  });

  it('batches what arrives while a write is in flight, into events of at most 64 KiB', async () => {
    const { log, pipeline } = start();
    log.hold = true;
    pipeline.push(Buffer.from('a'));
    for (let i = 0; i < 50; i += 1) pipeline.push(Buffer.alloc(4096, i));
    log.release();
    await pipeline.finish({ exitCode: 0 });
    const sizes = log.events.slice(0, -1).map((event) => (event as OutputEvent).data.length);
    expect(sizes).toEqual([1, 65_536, 65_536, 65_536, 8_192]);
    expect(log.appends).toBe(3);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(MAX_EVENT_DATA_BYTES);
  });

  it('lends what is published, and writes to no memory that a reader still has', async () => {
    const log = new MemoryLog();
    const kept: { readonly item: LiveItem; readonly bytes: Buffer; release(): void }[] = [];
    const memories = new Set<ArrayBufferLike>();
    let lent = 0;
    const pipeline = new OutputPipeline({
      log,
      instance: 1,
      size: { cols: 80, rows: 24 },
      durable: async () => {},
      publish: (item) => {
        if (item.kind !== 'events' || !item.loan) return;
        lent += 1;
        for (const event of item.events) {
          if (event.type === 'pty.output') memories.add(event.data.buffer);
        }
        kept.push({ item, bytes: outputOf(item.events), release: item.loan.release });
        for (const one of kept) {
          expect(outputOf(publishedEvents([one.item])).equals(one.bytes)).toBe(true);
        }
        if (kept.length > 4) kept.shift()?.release();
      },
      pause: () => {},
      unwritable: () => {},
      nowMicros: () => 0,
    });
    for (let round = 0; round < 40; round += 1) {
      log.hold = true;
      for (let i = 0; i < 40; i += 1) pipeline.push(Buffer.alloc(4095, round * 40 + i));
      if (round % 5 === 0) pipeline.resized({ cols: 80 + round, rows: 24 });
      log.release();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await pipeline.finish({ exitCode: 0 });
    expect(lent).toBeGreaterThan(20);
    expect(memories.size).toBeLessThan(60);
  });

  it('writes a lone chunk at once', () => {
    const { log, pipeline } = start();
    pipeline.push(Buffer.from('k'));
    expect(log.appends).toBe(1);
  });

  it('copies what it is given, so that the reader may use its buffer again', async () => {
    const { log, pipeline } = start();
    const buffer = Buffer.from('first');
    pipeline.push(buffer);
    buffer.fill('x');
    await pipeline.finish({ exitCode: 0 });
    expect(outputOf(log.events).toString()).toBe('first');
  });

  it('states the size with the first output and with the first after a resize, and publishes the resize between', async () => {
    const { log, pipeline, published } = start();
    log.hold = true;
    pipeline.push(Buffer.from('one'));
    pipeline.push(Buffer.from('two'));
    pipeline.resized({ cols: 100, rows: 30 });
    pipeline.push(Buffer.from('three'));
    log.release();
    await pipeline.finish({ exitCode: 0 });
    const outputs = log.events.filter((event) => event.type === 'pty.output');
    expect(outputs.map(({ data, size }) => [data.toString(), size?.cols])).toEqual([
      ['one', 80],
      ['two', undefined],
      ['three', 100],
    ]);
    expect(published.map(({ kind }) => kind)).toEqual(['events', 'events', 'resized', 'events']);
  });

  it('holds output back while the log cannot be written, says so, and loses nothing', async () => {
    const { log, pipeline, published, failures } = start();
    log.failures = 1;
    pipeline.push(Buffer.from('kept'));
    await pipeline.finish({ exitCode: 0 });
    expect(failures).toEqual([true, false]);
    expect(outputOf(log.events).toString()).toBe('kept');
    expect(publishedEvents(published)).toHaveLength(1);
  });

  it('pauses the PTY at 4 MiB that the log has not taken, and resumes it', async () => {
    const { log, pipeline, pauses } = start();
    log.hold = true;
    const chunk = Buffer.alloc(4096);
    for (let bytes = 0; bytes < MAX_UNLOGGED_BYTES; bytes += chunk.length) pipeline.push(chunk);
    expect(pauses).toEqual([true]);
    log.release();
    await pipeline.finish({ exitCode: 0 });
    expect(pauses).toEqual([true, false]);
  });

  it('ends without an exit when it is stopped while the log cannot be written', async () => {
    const { log, pipeline } = start();
    log.failures = Number.POSITIVE_INFINITY;
    pipeline.push(Buffer.from('lost to this process only'));
    const exit = pipeline.finish({ exitCode: 0 });
    pipeline.stop();
    expect(await exit).toBeUndefined();
  });
});
