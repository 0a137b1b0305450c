/** The supervisor itself: every terminal of one state directory, in the process that calls. */
import { GranttyError } from '../core/errors.js';
import type { Name, TerminalTuple } from '../core/names.js';
import type { RequestMark } from '../core/terminal.js';
import type { Cgroups } from '../pty/cgroup.js';
import { removeHalfMade, scanResources } from '../store/metadata.js';
import { recoverResource } from '../store/recoveredResource.js';
import type {
  CreateSpec,
  ListPart,
  Supervisor,
  SupervisorInfo,
  TerminalKey,
  TerminalSnapshot,
} from './api.js';
import { ChangeFeed } from './changeFeed.js';
import { type Log, type LogSync, makeContext, type SupervisorContext } from './context.js';
import { createTerminal } from './creation.js';
import { launchPlan } from './instance.js';
import type { LifeLimits } from './instanceLife.js';
import { wasStartedBy } from './instanceRecord.js';
import type { Isolation } from './isolation.js';
import { sweepLives, type Ticker } from './lifeSweep.js';
import { defaultLimits, type SupervisorLimits } from './limits.js';
import { sweepLogs } from './logSweep.js';
import { ownerDefaults } from './ownerDefaults.js';
import { recover } from './recovery.js';
import { RequestMemory, requestReused } from './requestMemory.js';
import { noSuchTerminal, Terminal } from './terminal.js';
import { TerminalIndex } from './terminalIndex.js';

export interface InProcessOptions {
  readonly stateDir: string;
  /** Of the state directory: see `SupervisorInfo`. */
  readonly stateDirId: string;
  readonly isolation: Isolation;
  readonly version: string;
  readonly log: Log;
  /** The service's address for a terminal; written to meta.json while it runs. */
  readonly locator: (tuple: TerminalTuple) => string;
  readonly logSync?: LogSync;
  readonly limits?: Partial<SupervisorLimits>;
  /** Milliseconds since the Unix epoch. */
  readonly now?: () => number;
  readonly ticker?: Ticker;
  /** Gives each instance a control group of its own. */
  readonly cgroups?: Cgroups | undefined;
  /** Aborted when the end cannot wait: what is being stopped is killed. */
  readonly hurry?: AbortSignal;
}

/** Resources looked at together at the start: each may wait seconds for processes that it has lost. */
const RECOVERIES_AT_ONCE = 32;

/**
 * Reads the state directory, records the ends of instances that an earlier supervisor lost, and
 * serves. The caller holds the directory's lock. Disposing ends every terminal: processes live as
 * long as the supervisor that owns their PTYs.
 */
export async function createInProcessSupervisor(options: InProcessOptions): Promise<Supervisor> {
  const registry = new Registry(options);
  await registry.load();
  return registry;
}

class Registry implements Supervisor {
  readonly #options: InProcessOptions;
  readonly #context: SupervisorContext;
  readonly #terminals = new TerminalIndex<Terminal>();
  /** Creates under way, by `<owner>/<id>`: the id is taken, the terminal not yet to be seen. */
  readonly #creating = new Map<
    string,
    { readonly mark: RequestMark | undefined; readonly done: Promise<Terminal> }
  >();
  readonly #requests: RequestMemory;
  readonly #feed = new ChangeFeed();
  readonly #life: LifeLimits;
  readonly #endSweeps: readonly (() => void)[];

  constructor(options: InProcessOptions) {
    const limits = { ...defaultLimits, ...options.limits };
    this.#options = options;
    this.#life = limits.life;
    this.#context = makeContext(options, limits, (terminal) => {
      const isHere = () => this.#terminals.get(terminal.record) === terminal;
      if (!isHere()) return;
      void terminal.snapshot().then((snapshot) => {
        // Nothing is heard of it after its removal, which may have come meanwhile.
        if (isHere()) this.#feed.changed(snapshot);
      });
    });
    const { ticker, now, log } = this.#context;
    this.#requests = new RequestMemory(options.now ?? (() => performance.now()));
    const terminals = () => this.#terminals.values();
    const retainMs = limits.logRetainMs;
    this.#endSweeps = [
      sweepLives(ticker, this.#life, terminals),
      sweepLogs({ ticker, now, log, retainMs, terminals }),
    ];
  }

  async load(): Promise<void> {
    const { stateDir, log } = this.#options;
    const underWay = new Set<Promise<void>>();
    for await (const { dir, tuple } of scanResources(stateDir, { log, clear: true })) {
      const recovery = this.#recover(dir, tuple)
        .catch(async (error: unknown) => {
          if (await removeHalfMade(dir).catch(() => false)) return;
          log.error({ ...tuple, err: error }, 'resource cannot be read; left as it is');
        })
        .finally(() => underWay.delete(recovery));
      underWay.add(recovery);
      if (underWay.size >= RECOVERIES_AT_ONCE) await Promise.race(underWay);
    }
    await Promise.all(underWay);
  }

  async #recover(dir: string, tuple: TerminalTuple): Promise<void> {
    const found = await recover(this.#context, dir, await recoverResource(dir));
    this.#context.logQuota.add(tuple.owner, found.logBytes);
    this.#terminals.set(new Terminal(this.#context, dir, found.record, found.seqs));
  }

  async info(): Promise<SupervisorInfo> {
    const { isolation, stateDirId, version } = this.#options;
    return {
      isolation: isolation.mode,
      stateDirId,
      pid: process.pid,
      version,
      maxLiveTerminals: this.#context.admission.maxPerHost,
      maxLiveTerminalsPerOwner: this.#context.admission.maxPerOwner,
      life: this.#life,
    };
  }

  async defaults(owner: Name) {
    return ownerDefaults(this.#options.isolation, owner);
  }

  async create(spec: CreateSpec): Promise<TerminalSnapshot> {
    const key = keyOf(spec.tuple);
    const earlier = this.#creating.get(key);
    const existing = this.#terminals.get(spec.tuple);
    const mark = earlier ? earlier.mark : existing?.record.request;
    if (earlier || existing) {
      if (!spec.request || mark?.key !== spec.request.key) throw exists(spec.tuple);
      if (mark.bodyHash !== spec.request.bodyHash) throw requestReused();
      const terminal = existing ?? (await earlier?.done);
      if (!terminal) throw exists(spec.tuple);
      return terminal.snapshot();
    }
    const place = this.#context.admission.enter(spec.tuple.owner);
    const done = createTerminal(this.#context, this.#options.stateDir, spec, place);
    this.#creating.set(key, { mark: spec.request, done });
    try {
      const terminal = await done;
      this.#terminals.set(terminal);
      const snapshot = await terminal.snapshot();
      this.#feed.changed(snapshot);
      return snapshot;
    } finally {
      this.#creating.delete(key);
    }
  }

  async start(key: TerminalKey, spec: Parameters<Supervisor['start']>[1]) {
    const terminal = this.#find(key);
    return this.#requests.once(spec.request, async () => {
      if (!wasStartedBy(terminal.record, spec.request)) await terminal.start(spec);
      return terminal.snapshot();
    });
  }

  async launchPlan(key: TerminalKey) {
    const { dir, record } = this.#find(key);
    return launchPlan(dir, record);
  }

  async update(key: TerminalKey, spec: Parameters<Supervisor['update']>[1]) {
    const terminal = this.#find(key);
    await terminal.update(spec);
    return terminal.snapshot();
  }

  async remove(key: TerminalKey): Promise<void> {
    const terminal = this.#find(key);
    await terminal.remove();
    this.#terminals.delete(key);
    this.#feed.removed(terminal.record, terminal.record.uid);
  }

  async get(key: TerminalKey) {
    return this.#lookUp(key)?.snapshot();
  }

  async list(owner?: Name, part?: ListPart): Promise<readonly TerminalSnapshot[]> {
    const found: TerminalSnapshot[] = [];
    // One after the other: a log that has to be opened first takes descriptors and buffers meanwhile.
    for (const terminal of this.#terminals.list(owner, part)) found.push(await terminal.snapshot());
    return found;
  }

  changes(cursor: string | undefined, signal: AbortSignal) {
    return this.#feed.follow(cursor, () => this.list(), signal);
  }

  async exited(key: TerminalKey, signal: AbortSignal): Promise<TerminalSnapshot> {
    const terminal = this.#find(key);
    await terminal.exited(signal);
    return terminal.snapshot();
  }

  async openOutput(key: TerminalKey, signal: AbortSignal) {
    return this.#find(key).openOutput(signal);
  }

  async attach(key: TerminalKey, spec: Parameters<Supervisor['attach']>[1]) {
    return this.#find(key).attach(spec);
  }

  async write(key: TerminalKey, spec: Parameters<Supervisor['write']>[1]) {
    const terminal = this.#find(key);
    return this.#requests.once(spec.request, () => terminal.write(spec));
  }

  async resize(...[key, size, lease]: Parameters<Supervisor['resize']>): Promise<void> {
    return this.#find(key).resize(size, lease);
  }

  async signal(...[key, name, lease, request]: Parameters<Supervisor['signal']>) {
    const terminal = this.#find(key);
    return this.#requests.once(request, () => terminal.signal(name, lease));
  }

  async stop(key: TerminalKey, spec: Parameters<Supervisor['stop']>[1]) {
    return this.#find(key).stop(spec.graceMs, spec.lease);
  }

  async kill(key: TerminalKey, spec: Parameters<Supervisor['kill']>[1]) {
    return this.#find(key).kill(spec.lease);
  }

  async foreground(key: TerminalKey) {
    return this.#find(key).foreground();
  }

  /** Writes to a PTY are synchronous, so once the queues are swept the last byte has been written. */
  async fence(leaseIds: readonly string[]): Promise<void> {
    this.#context.leases.fence(leaseIds);
    for (const terminal of this.#terminals.values()) terminal.dropRefused();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const end of this.#endSweeps) end();
    await Promise.allSettled([...this.#creating.values()].map(({ done }) => done));
    const terminals = [...this.#terminals.values()];
    const ends = terminals.map(async (terminal) => {
      const { owner, id } = terminal.record;
      await terminal.shutDown().catch((error: unknown) => {
        this.#options.log.error({ owner, id, err: error }, 'the terminal did not end in order');
      });
    });
    await Promise.all(ends);
    this.#feed.end();
  }

  #lookUp({ owner, id, uid }: TerminalKey): Terminal | undefined {
    const terminal = this.#terminals.get({ owner, id });
    return uid === undefined || terminal?.record.uid === uid ? terminal : undefined;
  }

  #find(key: TerminalKey): Terminal {
    const terminal = this.#lookUp(key);
    if (!terminal) throw noSuchTerminal();
    return terminal;
  }
}

function keyOf({ owner, id }: { readonly owner: Name; readonly id: Name }): string {
  return `${owner}/${id}`;
}

function exists({ owner, id }: TerminalTuple): GranttyError {
  return new GranttyError(
    'TERMINAL_EXISTS',
    `owner ${owner} has a terminal ${id} already; name another id or use that one`,
  );
}
