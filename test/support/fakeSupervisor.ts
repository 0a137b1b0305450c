/**
 * A supervisor without processes that records every call: terminals are records in memory, their logs
 * real files, and a test says what they print and when they end.
 */
import { EventEmitter } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { AsyncQueue } from '../../src/core/asyncQueue.js';
import { GranttyError } from '../../src/core/errors.js';
import type { ExitStatus, TerminalEvent, TerminalSize } from '../../src/core/event.js';
import { borrowBlock, HEAD_BYTES } from '../../src/core/eventBlocks.js';
import type { Name } from '../../src/core/names.js';
import { isLive, type TerminalRecord } from '../../src/core/terminal.js';
import { EventLog } from '../../src/store/eventLog.js';
import { writeRecord } from '../../src/store/metadata.js';
import { resourceDir } from '../../src/store/paths.js';
import type {
  AttachmentInfo,
  AttachmentSpec,
  CreateSpec,
  InputChannel,
  Lease,
  ListPart,
  LiveItem,
  LiveOutput,
  StartSpec,
  Supervisor,
  TerminalChange,
  TerminalKey,
  TerminalSnapshot,
  WriteSpec,
} from '../../src/supervisor/api.js';
import { TerminalIndex } from '../../src/supervisor/terminalIndex.js';

export interface RecordedCall {
  readonly method: keyof Supervisor | 'send';
  readonly args: readonly unknown[];
}

/** Bytes of live output that a subscriber may leave lying before the test has made a mistake. */
const MAX_QUEUED = 1 << 30;

export class FakeTerminal {
  record: TerminalRecord;
  firstSeq = 1;
  nextSeq = 1;
  readonly attachments = new Map<string, AttachmentInfo>();
  readonly subscribers = new Set<AsyncQueue<LiveItem>>();
  /** Bytes taken of each attachment's input. */
  readonly taken = new Map<string, number>();
  /** All that was written, frame by frame. */
  readonly input: Uint8Array[] = [];
  /** Set to hold input back: frames are taken when it resolves. */
  inputGate: Promise<void> = Promise.resolve();
  /** Set to have a terminal whose record says that it exited wait for its exit to be told. */
  settled: Promise<void> = Promise.resolve();
  /** Set to give output in blocks that are used again, as it comes over the socket; the blocks that were. */
  lent: Set<Buffer> | undefined;
  #log: EventLog | undefined;

  constructor(
    private readonly stateDir: string,
    record: TerminalRecord,
  ) {
    this.record = record;
  }

  async open(): Promise<void> {
    const dir = resourceDir(this.stateDir, this.record);
    await mkdir(dir, { recursive: true, mode: 0o700 });
    await writeRecord(dir, this.record, { sync: false });
    this.#log = await EventLog.open(dir);
  }

  async close(): Promise<void> {
    for (const queue of this.subscribers) queue.end();
    await this.#log?.close();
  }

  snapshot(): TerminalSnapshot {
    const { record, firstSeq, nextSeq } = this;
    return { record, firstSeq, nextSeq, attachments: [...this.attachments.values()] };
  }

  /** Prints each text or buffer as one event, in one batch: to the log, then to whoever listens. */
  async print(...outputs: readonly (string | Uint8Array)[]): Promise<void> {
    await this.append(
      outputs.map((data, index) => ({
        type: 'pty.output',
        seq: this.nextSeq + index,
        timeMicros: 1_700_000_000_000_000 + this.nextSeq + index,
        data: typeof data === 'string' ? Buffer.from(data) : data,
        ...(this.nextSeq + index === 1 && { size: this.record.size }),
      })),
    );
  }

  async exit(status: ExitStatus = { exitCode: 0 }): Promise<void> {
    const { pid: _pid, ...kept } = this.record;
    this.record = { ...kept, state: 'exited', exit: status, exitedAt: 1_700_000_001_000 };
    await this.append([
      { type: 'process.exit', seq: this.nextSeq, timeMicros: 1_700_000_001_000_000, ...status },
    ]);
  }

  async append(events: readonly TerminalEvent[]): Promise<void> {
    await this.#log?.append(events);
    this.nextSeq += events.length;
    const { lent } = this;
    for (const queue of this.subscribers) {
      if (!lent) queue.push({ kind: 'events', events });
      else for (const event of events) queue.push(lentItem(lent, event));
    }
  }

  setSize(size: TerminalSize): void {
    this.record = { ...this.record, size };
    for (const queue of this.subscribers) queue.push({ kind: 'resized', size });
  }
}

function lentItem(blocks: Set<Buffer>, event: TerminalEvent): LiveItem {
  if (event.type !== 'pty.output') return { kind: 'events', events: [event] };
  const { bytes, loan } = borrowBlock();
  blocks.add(bytes);
  // Whoever reads what was given back sees that it is not its own.
  bytes.fill(0xee);
  bytes.set(event.data, HEAD_BYTES);
  const data = bytes.subarray(HEAD_BYTES, HEAD_BYTES + event.data.length);
  return { kind: 'events', events: [{ ...event, data }], loan, room: HEAD_BYTES };
}

export class FakeSupervisor implements Supervisor {
  readonly calls: RecordedCall[] = [];
  /** Called with each call as it comes. */
  onCall: (call: RecordedCall) => void = () => {};
  readonly terminals = new Map<string, FakeTerminal>();
  readonly changed = new EventEmitter();
  /** The environment that every terminal was created with. */
  storedEnv: Readonly<Record<string, string>> = {};
  /** Thrown by the next call of a method of this name. */
  readonly failures = new Map<RecordedCall['method'], unknown>();
  #uids = 0;
  readonly #history: TerminalChange[] = [];
  #forgotten = 0;

  constructor(readonly stateDir: string) {
    this.changed.setMaxListeners(0);
  }

  /** Calls other than `get`, which a decision needs before it can refuse. */
  get effects(): readonly RecordedCall['method'][] {
    return this.calls.map(({ method }) => method).filter((method) => method !== 'get');
  }

  async add(record: Partial<TerminalRecord> & Pick<TerminalRecord, 'id'>): Promise<FakeTerminal> {
    this.#uids += 1;
    const terminal = new FakeTerminal(this.stateDir, {
      owner: '1000' as Name,
      agent: 'coder' as Name,
      session: 'default' as Name,
      cwd: '/',
      command: ['/bin/sh'],
      state: 'running',
      createdAt: 1_700_000_000,
      uid: `uid-${this.#uids}`,
      instance: 1,
      pid: 4242,
      size: { cols: 80, rows: 24 },
      title: '',
      labels: {},
      backend: 'command',
      name: '',
      onExit: 'leave',
      updatedAt: 1_700_000_000_000,
      logEpoch: 0,
      ...record,
    });
    await terminal.open();
    this.terminals.set(nameOf(terminal.record), terminal);
    return terminal;
  }

  async info() {
    this.#record('info');
    return {
      isolation: 'shared-uid' as const,
      stateDirId: 'fake',
      pid: process.pid,
      version: '0.0.0',
      maxLiveTerminals: 100,
      maxLiveTerminalsPerOwner: 64,
      life: {},
    };
  }

  async defaults(owner: Name) {
    this.#record('defaults', owner);
    return { command: ['/bin/default-shell'], cwd: '/home/default' };
  }

  async create(spec: CreateSpec) {
    this.#record('create', spec);
    const { tuple, request, cwdUnder: _cwdUnder, env: _env, ...rest } = spec;
    const known = this.terminals.get(nameOf(tuple));
    if (known && request?.key === known.record.request?.key) return known.snapshot();
    if (known) throw new GranttyError('TERMINAL_EXISTS', 'the id is taken');
    const terminal = await this.add({ ...tuple, ...rest, ...(request && { request }) });
    return terminal.snapshot();
  }

  async start(key: TerminalKey, spec: StartSpec) {
    this.#record('start', key, spec);
    const terminal = this.#require(key);
    const { exit: _exit, exitedAt: _exitedAt, ...kept } = terminal.record;
    const { createdBy } = spec;
    const instance = kept.instance + 1;
    terminal.record = { ...kept, state: 'running', instance, ...(createdBy && { createdBy }) };
    return terminal.snapshot();
  }

  async launchPlan(key: TerminalKey) {
    this.#record('launchPlan', key);
    const { command, cwd } = this.#require(key).record;
    return { command, cwd, env: this.storedEnv };
  }

  async update(key: TerminalKey, spec: object) {
    this.#record('update', key, spec);
    const terminal = this.#require(key);
    terminal.record = { ...terminal.record, ...spec };
    return terminal.snapshot();
  }

  async remove(key: TerminalKey) {
    this.#record('remove', key);
    const terminal = this.#require(key);
    this.terminals.delete(nameOf(terminal.record));
    await terminal.close();
  }

  async get(key: TerminalKey) {
    this.#record('get', key);
    return this.#find(key)?.snapshot();
  }

  async list(owner?: Name, part?: ListPart) {
    this.#record('list', owner, part);
    const index = new TerminalIndex<FakeTerminal>();
    for (const terminal of this.terminals.values()) index.set(terminal);
    return index.list(owner, part).map((terminal) => terminal.snapshot());
  }

  async *changes(cursor: string | undefined, signal: AbortSignal): AsyncGenerator<TerminalChange> {
    this.#record('changes', cursor);
    const queue = new AsyncQueue<TerminalChange>(MAX_QUEUED);
    const push = (change: TerminalChange) => queue.push(change);
    this.changed.on('change', push);
    signal.addEventListener('abort', () => queue.end(), { once: true });
    try {
      const since = cursor === undefined ? -1 : Number(cursor);
      if (since >= this.#forgotten) yield* this.#history.slice(since);
      else {
        const terminals = [...this.terminals.values()].map((terminal) => terminal.snapshot());
        yield { kind: 'snapshot', terminals, cursor: String(this.#history.length) };
      }
      yield* queue;
    } finally {
      this.changed.off('change', push);
    }
  }

  /** Tells followers that a terminal's record has changed, or that it is gone. */
  announce(terminal: FakeTerminal, kind: 'changed' | 'removed' = 'changed'): void {
    const cursor = String(this.#history.length + 1);
    const { record } = terminal;
    const change: TerminalChange =
      kind === 'changed'
        ? { kind, terminal: terminal.snapshot(), cursor }
        : { kind, tuple: record, uid: record.uid, cursor };
    this.#history.push(change);
    this.changed.emit('change', change);
  }

  /** Cursors from before now cannot be gone on from. */
  forgetChanges(): void {
    this.#forgotten = this.#history.length + 1;
  }

  async exited(key: TerminalKey, signal: AbortSignal) {
    this.#record('exited', key);
    const terminal = this.#require(key);
    if (!isLive(terminal.record.state)) {
      await terminal.settled;
      return terminal.snapshot();
    }
    const { items } = await this.openOutput(key, signal);
    for await (const item of items) {
      if (item.kind === 'events' && item.events.at(-1)?.type === 'process.exit') break;
    }
    signal.throwIfAborted();
    return terminal.snapshot();
  }

  async openOutput(key: TerminalKey, signal: AbortSignal): Promise<LiveOutput> {
    this.#record('openOutput', key);
    const terminal = this.#require(key);
    const queue = new AsyncQueue<LiveItem>(MAX_QUEUED);
    terminal.subscribers.add(queue);
    const end = () => {
      terminal.subscribers.delete(queue);
      queue.end();
    };
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    return { nextSeq: terminal.nextSeq, items: queue };
  }

  async attach(key: TerminalKey, spec: AttachmentSpec): Promise<InputChannel> {
    this.#record('attach', key, spec);
    const terminal = this.#require(key);
    const resumed = spec.attachmentId !== undefined && terminal.taken.has(spec.attachmentId);
    const attachmentId = resumed ? (spec.attachmentId ?? '') : `attachment-${terminal.taken.size}`;
    const { kind, subject } = spec;
    const info: AttachmentInfo = { attachmentId, kind, subject, since: 1, mode: 'read' };
    terminal.attachments.set(attachmentId, info);
    terminal.taken.set(attachmentId, terminal.taken.get(attachmentId) ?? 0);
    return {
      attachmentId,
      resumed,
      get taken() {
        return terminal.taken.get(attachmentId) ?? 0;
      },
      send: async (data, lease) => {
        this.#record('send', data, lease);
        await this.#take(terminal, data);
        const taken = (terminal.taken.get(attachmentId) ?? 0) + data.length;
        terminal.taken.set(attachmentId, taken);
        return taken;
      },
      [Symbol.asyncDispose]: async () => {
        terminal.attachments.delete(attachmentId);
      },
    };
  }

  async write(key: TerminalKey, spec: WriteSpec) {
    this.#record('write', key, spec);
    const terminal = this.#require(key);
    const lastSeq = terminal.nextSeq - 1;
    await this.#take(terminal, spec.data);
    return { lastSeq };
  }

  async resize(key: TerminalKey, size: TerminalSize, lease: Lease) {
    this.#record('resize', key, size, lease);
    this.#running(this.#require(key)).setSize(size);
  }

  async signal(...args: Parameters<Supervisor['signal']>) {
    this.#record('signal', ...args);
    this.#running(this.#require(args[0]));
    return { processGroup: 4242 };
  }

  async stop(key: TerminalKey, spec: unknown) {
    this.#record('stop', key, spec);
    await this.#end(this.#require(key), { exitCode: 143, signal: 'SIGTERM' });
    return { survivors: [], quiescent: true, certain: false };
  }

  async kill(key: TerminalKey, spec: unknown) {
    this.#record('kill', key, spec);
    await this.#end(this.#require(key), { exitCode: 137, signal: 'SIGKILL' });
    return { survivors: [], quiescent: true, certain: false };
  }

  async foreground(key: TerminalKey) {
    this.#record('foreground', key);
    return { shellInForeground: true, waitingForInput: 'unknown' as const };
  }

  async fence(leaseIds: readonly string[]) {
    this.#record('fence', leaseIds);
  }

  async [Symbol.asyncDispose]() {
    for (const terminal of this.terminals.values()) await terminal.close();
  }

  #record(method: RecordedCall['method'], ...args: readonly unknown[]): void {
    this.calls.push({ method, args });
    this.onCall({ method, args });
    const failure = this.failures.get(method);
    this.failures.delete(method);
    if (failure !== undefined) throw failure;
  }

  #find({ owner, id, uid }: TerminalKey): FakeTerminal | undefined {
    const terminal = this.terminals.get(nameOf({ owner, id }));
    return uid === undefined || terminal?.record.uid === uid ? terminal : undefined;
  }

  #require(key: TerminalKey): FakeTerminal {
    const terminal = this.#find(key);
    if (terminal === undefined) throw new GranttyError('TERMINAL_NOT_FOUND', 'no such terminal');
    return terminal;
  }

  #running(terminal: FakeTerminal): FakeTerminal {
    if (isLive(terminal.record.state)) return terminal;
    throw new GranttyError('TERMINAL_EXITED', 'no process is left');
  }

  async #take(terminal: FakeTerminal, data: Uint8Array): Promise<void> {
    this.#running(terminal);
    await terminal.inputGate;
    terminal.input.push(data);
  }

  async #end(terminal: FakeTerminal, status: ExitStatus): Promise<void> {
    if (isLive(terminal.record.state)) await terminal.exit(status);
  }
}

function nameOf({ owner, id }: { readonly owner: string; readonly id: string }): string {
  return `${owner}/${id}`;
}
