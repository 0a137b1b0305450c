/** What fails besides the call, or where nobody waits for it: terminals and their places outlive it. */
import { existsSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jest } from '@jest/globals';
import type { TerminalRecord } from '../../src/core/terminal.js';
import type { Cgroup, Cgroups } from '../../src/pty/cgroup.js';
import { readProcess } from '../../src/pty/processTable.js';
import { EventLog } from '../../src/store/eventLog.js';
import { resourceDir } from '../../src/store/paths.js';
import { HeldRecord } from '../../src/supervisor/heldRecord.js';
import { LogQuota } from '../../src/supervisor/logQuota.js';
import { Terminal } from '../../src/supervisor/terminal.js';
import { TerminalLog } from '../../src/supervisor/terminalLog.js';
import { ManualTicker } from '../support/manualTicker.js';
import {
  createSpec,
  eventsUntilExit,
  lease,
  silentLog,
  startRegistry,
} from '../support/registry.js';
import { onPath, skipAloud } from '../support/skipAloud.js';

/** Groups that hold nothing, and that cannot be looked at while `blind` has their ordinal, from 1 on. */
class PretendedGroups {
  readonly blind = new Set<number>();
  /** Ordinals of those that were made and not removed. */
  readonly left = new Set<number>();
  readonly #byNonce = new Map<string, Cgroup>();

  constructor(private readonly dir: string) {}

  get cgroups(): Cgroups {
    const make = async (nonce: string) => {
      const group = this.#group(this.#byNonce.size + 1);
      this.#byNonce.set(nonce, group);
      return group;
    };
    const find = (nonce: string) => this.#byNonce.get(nonce);
    return { make, find } as unknown as Cgroups;
  }

  #group(ordinal: number): Cgroup {
    this.left.add(ordinal);
    const pids = async () => {
      if (this.blind.has(ordinal)) throw Object.assign(new Error('no file'), { code: 'EMFILE' });
      return [];
    };
    const remove = async () => void this.left.delete(ordinal);
    const rest = { pids, remove, kill: async () => {}, isPopulated: async () => false };
    return { path: this.dir, ...rest } as unknown as Cgroup;
  }
}

const forever = () => AbortSignal.timeout(20_000);

describe('the supervisor', () => {
  let dir: string;
  let groups: PretendedGroups;

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'grantty-failures-'));
    groups = new PretendedGroups(dir);
  });

  afterEach(async () => {
    jest.restoreAllMocks();
    await rm(dir, { recursive: true });
  });

  /** Resolves when an error is logged with that message. */
  function logged(message: string): Promise<void> {
    return new Promise((resolve) => {
      jest.spyOn(silentLog, 'error').mockImplementation((_fields: unknown, text?: string) => {
        if (text === message) resolve();
      });
    });
  }

  it('ends an idle terminal once it can look for its processes again', async () => {
    const ticker = new ManualTicker();
    const limits = { life: { idleMs: 10_000 } };
    await using registry = await startRegistry({ ticker, limits, cgroups: groups.cgroups });
    const spec = createSpec(['cat']);
    await registry.supervisor.create(spec);
    const ended = eventsUntilExit(registry.supervisor, spec.tuple);
    const failed = logged('the terminal could not be ended');
    groups.blind.add(1);
    ticker.advance(0);
    ticker.advance(10_000);
    await failed;
    groups.blind.clear();
    ticker.advance(1_000);
    expect((await ended).exit).toMatchObject({ reason: 'idle-limit' });
  });

  it('records an exit although nobody can say what survived, and sweeps no more than it can', async () => {
    await using registry = await startRegistry({ cgroups: groups.cgroups });
    const { supervisor } = registry;
    const spec = createSpec(['sh', '-c', 'read line'], { onExit: 'sweep' });
    await supervisor.create(spec);
    const failed = logged('what outlived the terminal could not be swept');
    groups.blind.add(1);
    await supervisor.write(spec.tuple, { data: Buffer.from('\n'), lease });
    const { record } = await supervisor.exited(spec.tuple, forever());
    expect(record).toMatchObject({ state: 'exited', exit: { exitCode: 0 } });
    expect(record.exit).not.toHaveProperty('survivors');
    await failed;
  });

  it('ends in order for all others when one terminal cannot be ended', async () => {
    const registry = await startRegistry({ stateDir: dir, cgroups: groups.cgroups });
    const { supervisor } = registry;
    const stuck = await supervisor.create(createSpec(['cat']));
    const other = await supervisor.create(createSpec(['cat']));
    const changes = supervisor.changes(undefined, forever());
    await changes[Symbol.asyncIterator]().next();
    groups.blind.add(1);
    const failed = logged('the terminal did not end in order');
    try {
      await registry[Symbol.asyncDispose]();
      await failed;
      expect(readProcess(other.record.pid ?? 0)).toBeUndefined();
      const states: string[] = [];
      for await (const change of changes) {
        if (change.kind === 'changed') states.push(change.terminal.record.state);
      }
      expect(states).toContain('exited');
    } finally {
      if (readProcess(stuck.record.pid ?? 0)) process.kill(stuck.record.pid ?? 0, 'SIGKILL');
      await supervisor.exited(stuck.record, forever());
    }
  });

  it('lets nothing happen to a terminal that is being removed', async () => {
    await using registry = await startRegistry();
    const { supervisor } = registry;
    const spec = createSpec(['true']);
    await supervisor.create(spec);
    await supervisor.exited(spec.tuple, forever());
    const removal = supervisor.remove(spec.tuple);
    const others = await Promise.allSettled([
      supervisor.start(spec.tuple, {}),
      supervisor.update(spec.tuple, { title: 'late' }),
      supervisor.remove(spec.tuple),
    ]);
    const gone = { status: 'rejected', reason: { reason: 'TERMINAL_NOT_FOUND' } };
    expect(others).toMatchObject([gone, gone, gone]);
    await removal;
    expect(existsSync(resourceDir(registry.stateDir, spec.tuple))).toBe(false);
  });

  it('has a terminal started again whose removal failed', async () => {
    await using registry = await startRegistry();
    const { supervisor } = registry;
    const spec = createSpec(['true']);
    await supervisor.create(spec);
    await supervisor.exited(spec.tuple, forever());
    const place = resourceDir(registry.stateDir, spec.tuple);
    await rename(place, `${dir}/aside`);
    await expect(supervisor.remove(spec.tuple)).rejects.toThrow('ENOENT');
    await rename(`${dir}/aside`, place);
    await supervisor.start(spec.tuple, {});
    await supervisor.exited(spec.tuple, forever());
    await supervisor.remove(spec.tuple);
  });

  it('waits no longer than a moment for a program that leaves its terminal at once', async () => {
    if (!onPath('python3')) return skipAloud('python3 is not installed');
    const left = join(dir, 'left');
    const program = `
import fcntl, signal, sys, termios, time
signal.signal(signal.SIGHUP, signal.SIG_IGN)
fcntl.ioctl(0, termios.TIOCNOTTY)
open(sys.argv[1], "w").close()
time.sleep(1000)`;
    // It is not looked for before it has left.
    const { save } = HeldRecord.prototype;
    jest.spyOn(HeldRecord.prototype, 'save').mockImplementation(async function (
      this: HeldRecord,
      record: TerminalRecord,
      durable: boolean,
    ) {
      await save.call(this, record, durable);
      if (record.state !== 'running') return;
      while (!existsSync(left)) await new Promise((resolve) => setTimeout(resolve, 5));
    });
    await using registry = await startRegistry();
    const spec = createSpec(['python3', '-c', program, left]);
    const { record } = await registry.supervisor.create(spec);
    expect(readProcess(record.pid ?? 0)?.ttyDevice).toBe(0);
    const result = await registry.supervisor.kill(spec.tuple, { lease });
    expect(result.survivors).toEqual([]);
  }, 30_000);

  it('says why a create failed and gives its place back, though its log fails too', async () => {
    const { save } = HeldRecord.prototype;
    const { close } = EventLog.prototype;
    jest.spyOn(HeldRecord.prototype, 'save').mockImplementation(async function (
      this: HeldRecord,
      record: TerminalRecord,
      durable: boolean,
    ) {
      if (record.state !== 'created') throw new Error('no record');
      await save.call(this, record, durable);
    });
    jest.spyOn(EventLog.prototype, 'close').mockImplementation(async function (this: EventLog) {
      await close.call(this);
      throw new Error('no sync');
    });
    await using registry = await startRegistry({
      limits: { terminalsPerOwner: 1 },
      cgroups: groups.cgroups,
    });
    const spec = createSpec(['cat']);
    await expect(registry.supervisor.create(spec)).rejects.toThrow('no record');
    expect(existsSync(resourceDir(registry.stateDir, spec.tuple))).toBe(false);
    expect(groups.left.size).toBe(0);
    jest.restoreAllMocks();
    await registry.supervisor.create(spec);
  });

  it('has the record from before a start that failed, though its log fails too', async () => {
    await using registry = await startRegistry({ cgroups: groups.cgroups });
    const { supervisor } = registry;
    const spec = createSpec(['sh', '-c', 'exit 3']);
    await supervisor.create(spec);
    await supervisor.exited(spec.tuple, forever());
    const { close } = EventLog.prototype;
    jest.spyOn(EventLog.prototype, 'close').mockImplementation(async function (this: EventLog) {
      await close.call(this);
      throw new Error('no sync');
    });
    const { save } = HeldRecord.prototype;
    jest.spyOn(HeldRecord.prototype, 'save').mockImplementationOnce(async function (
      this: HeldRecord,
      record: TerminalRecord,
      durable: boolean,
    ) {
      await save.call(this, record, durable);
      throw new Error('no record');
    });
    await expect(supervisor.start(spec.tuple, {})).rejects.toThrow('no record');
    const found = await supervisor.get(spec.tuple);
    expect(found?.record).toMatchObject({ state: 'exited', instance: 1, exit: { exitCode: 3 } });
    expect(groups.left.size).toBe(0);
  });

  it('shows no title that could not be written', async () => {
    await using registry = await startRegistry();
    const { supervisor } = registry;
    const spec = createSpec(['true'], { title: 'before', labels: { a: '1' } });
    await supervisor.create(spec);
    await supervisor.exited(spec.tuple, forever());
    const place = resourceDir(registry.stateDir, spec.tuple);
    await rename(place, `${dir}/aside`);
    const late = supervisor.update(spec.tuple, { title: 'late', labels: { a: '2' } });
    const later = supervisor.update(spec.tuple, { title: 'later' });
    const failed = { status: 'rejected', reason: { code: 'ENOENT' } };
    expect(await Promise.allSettled([late, later])).toMatchObject([failed, failed]);
    await rename(`${dir}/aside`, place);
    const found = await supervisor.get(spec.tuple);
    expect(found?.record).toMatchObject({ title: 'before', labels: { a: '1' } });
  });

  it('tells nothing more of a terminal once it has told of its removal', async () => {
    await using registry = await startRegistry();
    const { supervisor } = registry;
    const spec = createSpec(['true']);
    await supervisor.create(spec);
    await supervisor.exited(spec.tuple, forever());
    const stop = new AbortController();
    const changes = supervisor.changes(undefined, stop.signal);
    await changes[Symbol.asyncIterator]().next();
    const { snapshot } = Terminal.prototype;
    let goOn = () => {};
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    jest.spyOn(Terminal.prototype, 'snapshot').mockImplementation(async function (this: Terminal) {
      await held;
      return snapshot.call(this);
    });
    const updated = supervisor.update(spec.tuple, { title: 'last' });
    await supervisor.remove(spec.tuple);
    goOn();
    await updated;
    await new Promise(setImmediate);
    stop.abort();
    const kinds: string[] = [];
    for await (const { kind } of changes) kinds.push(kind);
    expect(kinds.at(-1)).toBe('removed');
  });

  it('has a log looked at by nobody any more once that log has settled', async () => {
    const open = EventLog.open.bind(EventLog);
    let goOn = () => {};
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const opening = jest.spyOn(EventLog, 'open').mockImplementation(async (...args) => {
      await held;
      return open(...args);
    });
    const log = new TerminalLog(dir, { logOptions: {}, logQuota: new LogQuota(1) }, undefined);
    const steps: string[] = [];
    const looking = log.range().then(() => steps.push('looked'));
    const settled = log.settled().then(() => steps.push('settled'));
    for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
    expect(steps).toEqual([]);
    goOn();
    await Promise.all([looking, settled]);
    expect(steps).toEqual(['looked', 'settled']);
    expect(await log.range()).toEqual({ first: 1, next: 1 });
    expect(opening).toHaveBeenCalledTimes(1);
  });
});
