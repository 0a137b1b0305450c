/** What a new supervisor makes of a terminal that was alive when its host lost its power. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TerminalEvent } from '../../src/core/event.js';
import type { TerminalRecord } from '../../src/core/terminal.js';
import { encodeEvents } from '../../src/store/eventCodec.js';
import { makeResourceDir, readRecord, writeRecord } from '../../src/store/metadata.js';
import { EVENTS_FILE, META_FILE } from '../../src/store/paths.js';
import { recoverResource } from '../../src/store/recoveredResource.js';
import { recover } from '../../src/supervisor/recovery.js';
import { createSpec, startRegistry, type TestRegistry } from '../support/registry.js';

/** As printed by an instance: its log has reached the disk through `lastSeq`. */
function outputs(firstSeq: number, lastSeq: number): TerminalEvent[] {
  return Array.from({ length: lastSeq - firstSeq + 1 }, (_, i) => ({
    type: 'pty.output',
    seq: firstSeq + i,
    timeMicros: 1_735_689_600_000_000 + i,
    data: Buffer.from(`line ${firstSeq + i}\n`),
  }));
}

const runningBefore = (tuple: TerminalRecord | ReturnType<typeof createSpec>['tuple']) =>
  ({
    ...tuple,
    cwd: '/',
    command: ['cat'],
    state: 'running',
    socket: 'test:x',
    createdAt: 1_735_689_600,
    uid: 'u1',
    instance: 1,
    pid: 1,
    marks: { nonce: 'n1', startTime: 1, bootId: 'another-boot' },
    size: { cols: 80, rows: 24 },
    title: '',
    labels: {},
    backend: 'command',
    name: '',
    onExit: 'leave',
    updatedAt: 1_735_689_600_000,
    logEpoch: 1,
  }) satisfies TerminalRecord;

async function eventsIn(dir: string): Promise<Record<string, unknown>[]> {
  const text = await readFile(join(dir, EVENTS_FILE), 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

describe('a terminal whose host lost its power', () => {
  let registry: TestRegistry;
  let dir: string;
  let record: TerminalRecord;

  beforeEach(async () => {
    registry = await startRegistry();
    await registry.supervisor[Symbol.asyncDispose]();
    const { tuple } = createSpec(['cat']);
    dir = await makeResourceDir(registry.stateDir, tuple);
    record = runningBefore(tuple);
    await writeRecord(dir, record);
    await writeFile(join(dir, EVENTS_FILE), encodeEvents(outputs(1, 5)));
  });

  afterEach(async () => {
    await rm(registry.stateDir, { recursive: true });
  });

  /** Starts a supervisor on the directory, ends it, and gives the record. */
  async function recovered(): Promise<TerminalRecord> {
    const { supervisor } = await startRegistry({ stateDir: registry.stateDir });
    await supervisor[Symbol.asyncDispose]();
    return readRecord(dir);
  }

  it('gets another epoch, the seq that survived on record, and one end', async () => {
    const after = await recovered();
    expect(after).toMatchObject({
      state: 'error',
      logEpoch: 2,
      logRewinds: [{ epoch: 1, lastSeq: 5 }],
      exit: { reason: 'supervisor-lost' },
    });
    expect(after.marks).toBeUndefined();
    expect(after.pid).toBeUndefined();
    const events = await eventsIn(dir);
    expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(events[5]).toMatchObject({ type: 'process.exit', reason: 'supervisor-lost' });
    expect(await recovered()).toEqual(after);
  });

  it('counts what survived without the half line that is set aside', async () => {
    const whole = encodeEvents(outputs(1, 5));
    await writeFile(join(dir, EVENTS_FILE), whole.subarray(0, whole.length - 3));
    expect((await recovered()).logRewinds).toEqual([{ epoch: 1, lastSeq: 4 }]);
  });

  it('keeps the rewinds of before, as far as they still say something', async () => {
    const logRewinds = [
      { epoch: 1, lastSeq: 2 },
      { epoch: 2, lastSeq: 9 },
    ];
    await writeRecord(dir, { ...record, logEpoch: 3, logRewinds });
    expect(await recovered()).toMatchObject({
      logEpoch: 4,
      logRewinds: [
        { epoch: 1, lastSeq: 2 },
        { epoch: 3, lastSeq: 5 },
      ],
    });
  });

  it('has nothing appended before the rewind is on disk', async () => {
    // The record cannot be replaced: a folder is in its place once it has been read.
    await rm(join(dir, META_FILE));
    await mkdir(join(dir, META_FILE));
    const context = { bootId: 'this-boot', logOptions: {}, now: Date.now };
    await expect(recover(context, dir, { record, logBytes: 0, seqs: undefined })).rejects.toThrow();
    expect((await eventsIn(dir)).map(({ type }) => type)).not.toContain('process.exit');
  });

  it('is recovered with the ends and the size of the log that now ends it, which nobody opens again', async () => {
    const context = { bootId: 'this-boot', logOptions: {}, now: Date.now };
    const found = await recover(context, dir, await recoverResource(dir));
    expect(found.seqs).toEqual({ first: 1, next: 7 });
    expect(found).toEqual(await recoverResource(dir));
  });

  it('is rewound once by a recovery that was cut short before it wrote the end', async () => {
    const { marks: _marks, pid: _pid, ...unmarked } = record;
    const logRewinds = [{ epoch: 1, lastSeq: 5 }];
    await writeRecord(dir, { ...unmarked, logEpoch: 2, logRewinds });
    expect(await recovered()).toMatchObject({ state: 'error', logEpoch: 2, logRewinds });
  });

  it('keeps its epoch when only the supervisor was lost', async () => {
    const bootId = (await readFile('/proc/sys/kernel/random/boot_id', 'latin1')).trim();
    await writeRecord(dir, {
      ...record,
      pid: 4_194_304,
      marks: { ...record.marks, bootId } as never,
    });
    const after = await recovered();
    expect(after).toMatchObject({ state: 'error', logEpoch: 1, pid: 4_194_304 });
    expect(after.logRewinds).toBeUndefined();
  });
});
