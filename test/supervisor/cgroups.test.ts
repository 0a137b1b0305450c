/** Control groups where this machine can make them; elsewhere what can be seen without. */
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Cgroups, limitFiles } from '../../src/pty/cgroup.js';
import { readProcess } from '../../src/pty/processTable.js';
import type { Isolation } from '../../src/supervisor/isolation.js';
import {
  createSpec,
  eventsUntilExit,
  lease,
  name,
  outputOf,
  startRegistry,
} from '../support/registry.js';
import { skipAloud } from '../support/skipAloud.js';

const mount = /^\S+ \S+ \S+ \/ (\S+) .*- cgroup2 /m.exec(
  readFileSync('/proc/self/mountinfo', 'latin1'),
)?.[1];

/** A group to make others in, or undefined where that cannot be done. */
async function makeParent(): Promise<string | undefined> {
  if (mount === undefined) return undefined;
  const path = join(mount, `grantty-test-${process.pid}`);
  const isMade = await mkdir(path).then(
    () => true,
    () => false,
  );
  if (isMade && existsSync(join(path, 'cgroup.kill'))) return path;
  if (isMade) await rmdir(path);
  return undefined;
}

const parent = await makeParent();
const controllers = parent && readFileSync(join(parent, 'cgroup.controllers'), 'latin1');
const hasPids = controllers?.split(/\s/).includes('pids') ?? false;

describe('control groups', () => {
  it('are limited in the words of the kernel', () => {
    expect(limitFiles({})).toEqual([]);
    const limits = { memoryBytes: 1_048_576, processes: 9, cpuPercent: 150 };
    expect(limitFiles(limits)).toEqual([
      ['memory', '1048576'],
      ['pids', '9'],
      ['cpu', '150000 100000'],
    ]);
  });

  it('are not taken for made where a directory is no control group', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'grantty-cgroup-'));
    await expect(Cgroups.open({}, dir)).rejects.toThrow('is no control group of version 2');
    expect(await readdir(dir)).toEqual([]);
    await rm(dir, { recursive: true });
  });

  if (parent === undefined) {
    it('let nothing get away', () => skipAloud('no group of version 2 can be made here'));
    return;
  }

  afterAll(async () => {
    await rmdir(join(parent, 'grantty-terminals'));
    await rmdir(parent);
  });

  const groups = async () =>
    (await readdir(join(parent, 'grantty-terminals'), { withFileTypes: true }))
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);

  // They have left the session, the family and the environment: a scan does not find them.
  const ESCAPE =
    "read go; (setsid env -i /bin/sh -c 'sleep 1000 & echo $$ $! away; wait' &); exec sleep 1000";

  it.each([
    ['by-uid', true],
    ['shared-uid', false],
  ])(
    'let nothing get away, %s, and are gone with the last process',
    async (mode, certain) => {
      if (mode === 'by-uid' && process.getuid?.() !== 0) return;
      const isolation: Isolation =
        mode === 'by-uid' ? { mode, minUid: 1000 } : { mode: 'shared-uid', owners: 'any' };
      const cgroups = await Cgroups.open({}, parent);
      await using registry = await startRegistry({ cgroups, isolation });
      const { supervisor } = registry;
      const made = createSpec(['/bin/sh', '-c', ESCAPE]);
      const spec = { ...made, tuple: { ...made.tuple, owner: name('1000') } };
      await supervisor.create(spec);
      const stop = new AbortController();
      const { items } = await supervisor.openOutput(spec.tuple, stop.signal);
      await supervisor.write(spec.tuple, { data: Buffer.from('\n'), lease });
      let printed = '';
      for await (const item of items) {
        if (item.kind === 'events') printed += outputOf(item.events).toString();
        if (printed.includes('away')) break;
      }
      stop.abort();
      const away = printed.trim().split(' ').slice(0, 2);
      const [group] = await groups();
      const procs = join(parent, 'grantty-terminals', group ?? '', 'cgroup.procs');
      const inside = readFileSync(procs, 'latin1').trim().split('\n');
      expect(inside).toHaveLength(3);
      expect(inside).toEqual(expect.arrayContaining(away));
      const ended = eventsUntilExit(supervisor, spec.tuple);
      const result = await supervisor.kill(spec.tuple, { lease });
      expect(result).toMatchObject({ survivors: [], quiescent: true, certain });
      expect((await ended).exit.signal).toBe('SIGKILL');
      for (const pid of inside) expect(readProcess(pid)).toBeUndefined();
      expect(await groups()).toEqual([]);
    },
    30_000,
  );

  it('are refused when a controller that is asked for is missing', async () => {
    const limits = { memoryBytes: 1 << 30, processes: 100, cpuPercent: 100 };
    const missing = ['memory', 'pids', 'cpu'].filter((one) => !controllers?.includes(one));
    if (missing.length === 0) return;
    await expect(Cgroups.open(limits, parent)).rejects.toThrow(
      `has no controller ${missing.join(', ')}`,
    );
  });

  if (!hasPids) {
    it('hold the processes of a terminal to a limit', () =>
      skipAloud('version 2 has no controller "pids" here'));
    return;
  }

  it('hold the processes of a terminal to a limit', async () => {
    const cgroups = await Cgroups.open({ processes: 4 }, parent);
    await using registry = await startRegistry({ cgroups });
    const script = 'for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; wait';
    const spec = createSpec(['/bin/sh', '-c', script]);
    await registry.supervisor.create(spec);
    // It may have ended before anybody could follow its output.
    const { record } = await registry.supervisor.exited(spec.tuple, AbortSignal.timeout(20_000));
    expect(record.exit?.exitCode).toBeGreaterThan(0);
    await registry.supervisor.kill(spec.tuple, { lease });
  });
});
