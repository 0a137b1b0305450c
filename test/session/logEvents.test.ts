import type { TerminalEvent } from '../../src/core/event.js';
import { LogEvents } from '../../src/session/logEvents.js';
import { resourceDir } from '../../src/store/paths.js';
import { LogReader } from '../../src/store/reader/logReader.js';
import type { TerminalKey } from '../../src/supervisor/api.js';
import { createSpec, outputOf, startRegistry, type TestRegistry } from '../support/registry.js';

let registry: TestRegistry;
let events: LogEvents;

beforeAll(async () => {
  registry = await startRegistry();
  const { supervisor, stateDir } = registry;
  events = new LogEvents(supervisor, async (key) => {
    const terminal = await supervisor.get(key);
    if (!terminal) throw new Error(`no terminal ${key.id}`);
    return LogReader.open(resourceDir(stateDir, terminal.record));
  });
});

afterAll(() => registry[Symbol.asyncDispose]());

async function start(script: string): Promise<TerminalKey> {
  const { record } = await registry.supervisor.create(createSpec(['sh', '-c', script]));
  return { owner: record.owner, id: record.id };
}

/** Everything from `fromSeq` to the exit; waits for `before` when it has the first item. */
async function follow(key: TerminalKey, fromSeq: number, before?: Promise<unknown>) {
  const seen: TerminalEvent[] = [];
  const stop = new AbortController();
  for await (const item of events.follow(key, fromSeq, stop.signal)) {
    if (item.kind !== 'events') continue;
    seen.push(...item.events);
    await before;
    if (seen.at(-1)?.type === 'process.exit') stop.abort();
  }
  return seen;
}

const seqsFrom = (first: number, { length }: readonly unknown[]) =>
  Array.from({ length }, (_, index) => first + index);

const all = Buffer.from(Array.from({ length: 200_000 }, (_, index) => `${index + 1}\r\n`).join(''));

describe('history and live output as one sequence', () => {
  it('has no gap and no duplicate when it begins in the middle of a flood', async () => {
    const key = await start('seq 1 200000');
    const followed = await Promise.all(Array.from({ length: 5 }, () => follow(key, 1)));
    for (const seen of followed) {
      expect(seen.map(({ seq }) => seq)).toEqual(seqsFrom(1, seen));
      expect(outputOf(seen).equals(all)).toBe(true);
    }
  });

  it('begins at any seq', async () => {
    const key = await start('echo a; sleep 0.1; echo b; sleep 0.1; echo c');
    const whole = await follow(key, 1);
    // Of one output at least and of the exit; how many outputs it is depends on when they are read.
    const rest = await follow(key, 2);
    expect(rest.map(({ seq }) => seq)).toEqual(seqsFrom(2, rest));
    expect(rest).toEqual(whole.slice(1));
  });

  it('turns to the log for a consumer that falls behind by more than the supervisor keeps', async () => {
    const key = await start('for i in 1 2 3 4 5 6 7 8 9 10; do seq 1 200000; done');
    const exited = registry.supervisor.exited(key, new AbortController().signal);
    const seen = await follow(key, 1, exited);
    expect(seen.map(({ seq }) => seq)).toEqual(seqsFrom(1, seen));
    expect(outputOf(seen).length).toBe(all.length * 10);
  });

  it('tells the range of a log, and that a terminal is unknown', async () => {
    const key = await start('echo x');
    await follow(key, 1);
    expect(await events.range(key)).toMatchObject({ firstSeq: 1, size: { cols: 80, rows: 24 } });
    await expect(events.range({ ...key, uid: 'other' })).rejects.toMatchObject({
      reason: 'TERMINAL_NOT_FOUND',
    });
  });
});
