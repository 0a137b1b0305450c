import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { resourceDir } from '../../src/store/paths.js';
import type { Supervisor, TerminalKey, TerminalSnapshot } from '../../src/supervisor/api.js';
import { ManualTicker } from '../support/manualTicker.js';
import { createSpec, lease, owner, startRegistry } from '../support/registry.js';
import { createPrinting } from '../support/supervisorContract.js';

/** Resolves with the first snapshot of the terminal that satisfies `wanted`. */
async function when(
  supervisor: Supervisor,
  key: TerminalKey,
  wanted: (terminal: TerminalSnapshot) => boolean,
): Promise<TerminalSnapshot> {
  const stop = AbortSignal.timeout(20_000);
  for await (const change of supervisor.changes(undefined, stop)) {
    if (change.kind === 'removed') continue;
    const terminals = change.kind === 'snapshot' ? change.terminals : [change.terminal];
    const found = terminals.find(({ record }) => record.id === key.id);
    if (found && wanted(found)) return found;
  }
  throw new Error('it did not come to that');
}

describe('the quota of log bytes', () => {
  it('holds output back when it is used up, says so, and lets it go on when there is room', async () => {
    // Base64 and what lines need besides make 800,000 to 950,000 bytes of the first terminal's output:
    // one more burst, and the quota is used up.
    await using registry = await startRegistry({ limits: { logBytesPerOwner: 1_000_000 } });
    const { supervisor } = registry;
    const old = createSpec(['sh', '-c', 'head -c 600000 /dev/zero']);
    await supervisor.create(old);
    await supervisor.exited(old.tuple, AbortSignal.timeout(10_000));
    const bursts = createSpec(['sh', '-c', 'while read go; do head -c 200000 /dev/zero; done']);
    await supervisor.create(bursts);
    const paused = when(supervisor, bursts.tuple, (terminal) => terminal.paused === 'log-quota');
    await supervisor.write(bursts.tuple, { data: Buffer.from('\n\n'), lease });
    await paused;
    await expect(supervisor.create(createSpec(['true']))).rejects.toMatchObject({
      reason: 'QUOTA_LOG_BYTES',
    });

    await supervisor.remove(old.tuple);
    await when(supervisor, bursts.tuple, (terminal) => terminal.paused === undefined);
    await supervisor.kill(bursts.tuple, { lease });
    const ended = await supervisor.exited(bursts.tuple, AbortSignal.timeout(10_000));
    expect(ended.record.state).toBe('exited');
  });

  it('counts what was there before a restart', async () => {
    const stateDir = await mkdtemp(join(tmpdir(), 'grantty-quota-'));
    try {
      const first = await startRegistry({ stateDir });
      const spec = createSpec(['sh', '-c', 'head -c 100000 /dev/zero']);
      await first.supervisor.create(spec);
      await first.supervisor.exited(spec.tuple, AbortSignal.timeout(10_000));
      await first[Symbol.asyncDispose]();
      await using second = await startRegistry({ stateDir, limits: { logBytesPerOwner: 100_000 } });
      await expect(second.supervisor.create(createSpec(['true']))).rejects.toMatchObject({
        reason: 'QUOTA_LOG_BYTES',
      });
      await second.supervisor.remove(spec.tuple);
      await second.supervisor.create(createSpec(['true']));
    } finally {
      await rm(stateDir, { recursive: true });
    }
  });
});

describe('other limits of a supervisor', () => {
  it('refuse a terminal too many of one owner, and allow it when one has ended', async () => {
    await using registry = await startRegistry({ limits: { terminalsPerOwner: 2 } });
    const { supervisor } = registry;
    const specs = [1, 2, 3].map(() => createSpec(['cat']));
    const results = await Promise.allSettled(specs.map((spec) => supervisor.create(spec)));
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
    expect(results[2]).toMatchObject({ reason: { reason: 'QUOTA_TERMINALS' } });
    const [first, , third] = specs;
    if (!first || !third) throw new Error('no specs');
    await supervisor.kill(first.tuple, { lease });
    await supervisor.create(third);
    expect(await supervisor.list(owner)).toHaveLength(3);
  });

  it('seal a log and remove its oldest parts, and the seqs tell where it begins', async () => {
    const limits = { logSealBytes: 20_000, logRetainBytes: 60_000 };
    await using registry = await startRegistry({ limits });
    const { supervisor, stateDir } = registry;
    const script = 'for i in 1 2 3 4 5 6 7 8 9 10; do head -c 9000 /dev/zero; sleep 0.05; done';
    const spec = createSpec(['sh', '-c', script]);
    await supervisor.create(spec);
    const { firstSeq, nextSeq } = await supervisor.exited(spec.tuple, AbortSignal.timeout(10_000));
    expect(firstSeq).toBeGreaterThan(1);
    expect(nextSeq).toBeGreaterThan(firstSeq);
    const files = await readdir(resourceDir(stateDir, spec.tuple));
    expect(files).toContain(`events.${firstSeq}.jsonl`);
  });

  it('remove what is too old of running and of ended terminals, and never how one has ended', async () => {
    const ticker = new ManualTicker();
    let now = 1_800_000_000_000;
    const limits = { logSealBytes: 20_000, logRetainMs: 3_600_000, logBytesPerOwner: 200_000 };
    await using registry = await startRegistry({ limits, ticker, now: () => now });
    const { supervisor, stateDir } = registry;
    const script = 'for i in 1 2 3 4 5; do head -c 9000 /dev/zero; sleep 0.05; done';
    const ended = createSpec(['sh', '-c', script]);
    await supervisor.create(ended);
    const before = await supervisor.exited(ended.tuple, AbortSignal.timeout(20_000));
    expect(before.firstSeq).toBe(1);
    // It has printed what is sealed, and goes on with less than begins another part.
    const { key: running } = await createPrinting(
      supervisor,
      ['sh', '-c', `${script}; echo printed; while sleep 0.1; do echo; done`],
      'printed',
    );
    const sealed = async (key: TerminalKey) => {
      const files = await readdir(resourceDir(stateDir, { ...ended.tuple, ...key }));
      return files.flatMap(
        (file) => /^events\.(\d+)\.jsonl$/.exec(file)?.slice(1).map(Number) ?? [],
      );
    };
    // Files of the ended one have the time of this machine, which is earlier than the injected one.
    now += 3_600_001;
    const newest = new Map<TerminalKey, number>();
    for (const key of [ended.tuple, running])
      newest.set(key, (await sealed(key)).sort((a, b) => b - a)[0] ?? Number.NaN);
    ticker.advance(600_000);
    for (const [key, part] of newest) {
      const trimmed = await when(supervisor, key, ({ firstSeq }) => firstSeq > part);
      expect(await sealed(key)).toEqual([]);
      expect(trimmed.nextSeq).toBeGreaterThan(trimmed.firstSeq);
    }
    const after = await supervisor.get(ended.tuple);
    expect(after?.nextSeq).toBe(before.nextSeq);
    const events = await readFile(join(resourceDir(stateDir, ended.tuple), 'events.jsonl'), 'utf8');
    expect(events).toContain('"process.exit"');
    // What was removed is free again, and the ended one can be started: seq goes on.
    await supervisor.create(createSpec(['sh', '-c', 'head -c 100000 /dev/zero']));
    await supervisor.start(ended.tuple, {});
    await supervisor.kill(ended.tuple, { lease });
    expect((await supervisor.get(ended.tuple))?.nextSeq).toBeGreaterThan(before.nextSeq);
  });
});
