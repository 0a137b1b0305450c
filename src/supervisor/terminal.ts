/** One terminal resource: its record, who follows it, and the process instance it may have. */
import { setTimeout as delay } from 'node:timers/promises';
import { AsyncQueue } from '../core/asyncQueue.js';
import { fieldInvalid, GranttyError } from '../core/errors.js';
import type { TerminalSize } from '../core/event.js';
import type { SignalName } from '../core/signals.js';
import type { TerminalRecord } from '../core/terminal.js';
import { endTree, type TreeMarks } from '../pty/processTree.js';
import { EventLog } from '../store/eventLog.js';
import { logBytes } from '../store/logParts.js';
import { readEnvironment, removeResource, writeRecord } from '../store/metadata.js';
import type {
  AttachmentSpec,
  EndResult,
  ForegroundState,
  InputChannel,
  LaunchPlan,
  Lease,
  LiveItem,
  LiveOutput,
  SignalResult,
  StartSpec,
  TerminalSnapshot,
  UpdateSpec,
  WriteResult,
  WriteSpec,
} from './api.js';
import { type Attachment, Attachments } from './attachments.js';
import type { SupervisorContext } from './context.js';
import { Instance, prepareLaunch, terminalExited } from './instance.js';
import { untilWritten } from './untilWritten.js';

/** Bytes of output that wait for one subscriber that does not take them; then it is ended. */
const MAX_SUBSCRIBER_BYTES = 8 * 1024 * 1024;

/** Milliseconds in which the exit of an ended tree is expected on record: its drain takes 2 s at most. */
const EXIT_RECORD_MS = 4_000;

/** Milliseconds in which a killed tree is expected to be gone. */
const KILL_GRACE_MS = 5_000;

export class Terminal {
  #record: TerminalRecord;
  #instance: Instance | undefined;
  /** Resolves when the exit of the latest instance is on disk and published. */
  #ended: Promise<void> = Promise.resolve();
  /** Resolves when the sweep after the latest exit, if there was one, is over. */
  #swept: Promise<void> = Promise.resolve();
  /** First and next seq while no instance has the log open; undefined until it was looked at. */
  #seqs: Promise<{ readonly first: number; readonly next: number }> | undefined;
  #paused: TerminalSnapshot['paused'];
  /** Writes of the record, one after another. */
  #persisted: Promise<void> = Promise.resolve();
  #starting = false;
  /** Seq of the next event that subscribers will get. */
  #publishedNext = 1;
  readonly #abandoned = new AbortController();
  readonly #subscribers = new Set<AsyncQueue<LiveItem>>();
  readonly #attachments = new Attachments();

  constructor(
    private readonly context: SupervisorContext,
    readonly dir: string,
    record: TerminalRecord,
  ) {
    this.#record = record;
  }

  get record(): TerminalRecord {
    return this.#record;
  }

  /** A process runs, or is about to. */
  get live(): boolean {
    return this.#starting || this.#instance !== undefined;
  }

  /** An instance whose exit is not on record yet. */
  get #runs(): boolean {
    return this.#instance !== undefined && this.#record.exit === undefined;
  }

  /** Of a terminal whose log cannot be opened too: its record, and no events. */
  async snapshot(): Promise<TerminalSnapshot> {
    const { first, next } = await this.#seqRange().catch((error: unknown) => {
      const { owner, id } = this.#record;
      this.context.log.error({ owner, id, err: error }, 'the log cannot be opened');
      return { first: 1, next: 1 };
    });
    return {
      record: this.#record,
      firstSeq: first,
      nextSeq: next,
      attachments: this.#attachments.list(),
      ...(this.#paused && { paused: this.#paused }),
    };
  }

  async launchPlan(): Promise<LaunchPlan> {
    const { command, cwd } = this.#record;
    return { command, cwd, env: await readEnvironment(this.dir) };
  }

  /**
   * Starts the next instance. Resolves when the child runs and the record says so.
   * @throws COMMAND_NOT_FOUND, CWD_INVALID, FIELD_INVALID, QUOTA_TERMINALS, QUOTA_LOG_BYTES,
   * TERMINAL_EXISTS (it runs)
   */
  async start(spec: StartSpec): Promise<void> {
    if (this.#starting || this.#runs) throw stillRunning();
    this.context.logQuota.check(this.#record.owner);
    this.#starting = true;
    try {
      await this.#ended;
      await this.#start(spec);
    } finally {
      this.#starting = false;
    }
  }

  async #start(spec: StartSpec): Promise<void> {
    const { context, dir } = this;
    const before = this.#record;
    const { exit: _exit, exitedAt: _exitedAt, pid: _pid, ...kept } = before;
    const { size = before.size, createdBy } = spec;
    const asked = { instance: before.instance + 1, size, ...(createdBy && { createdBy }) };
    const planned = { ...kept, ...asked };
    const launch = await prepareLaunch(context, planned, await readEnvironment(dir), spec.cwdUnder);
    const marks = { nonce: launch.nonce, startTime: 0, bootId: context.bootId };
    const log = await EventLog.open(dir, context.logOptions);
    let instance: Instance;
    try {
      // Before the fork, so that whoever recovers from a crash finds the child by its nonce.
      await this.#save({ ...planned, state: 'created', marks }, false);
      instance = new Instance(context, planned, launch, log, {
        publish: (item) => this.#publish(item),
        unwritable: (error) => this.#unwritable(error),
      });
    } catch (error) {
      await log.close();
      await this.#save(before, false);
      throw error;
    }
    this.#instance = instance;
    this.#publishedNext = instance.nextSeq;
    this.#seqs = undefined;
    this.#ended = this.#finish(instance);
    // Nothing is awaited before this, so that it comes before whatever the exit records.
    await this.#save(
      {
        ...planned,
        state: 'running',
        pid: instance.marks.pid,
        marks: { ...marks, startTime: instance.marks.startTime },
        socket: context.locator(planned),
      },
      true,
    );
    await instance.onTerminal();
  }

  /** Records the exit, tells everybody, hangs up: in that order. */
  async #finish(instance: Instance): Promise<void> {
    const event = await instance.exit;
    if (!event) return;
    const { socket: _socket, ...kept } = this.#record;
    const { type: _type, seq: _seq, timeMicros, instance: _ordinal, ...exit } = event;
    const exitedAt = Math.floor(timeMicros / 1000);
    const saved = await untilWritten(
      () => this.#save({ ...kept, state: 'exited', exit, exitedAt }, true),
      this.#abandoned.signal,
      (failure) => this.#unwritable(failure),
    );
    if (!saved) return;
    this.#seqs = Promise.resolve({ first: instance.firstSeq, next: instance.nextSeq });
    this.#instance = undefined;
    this.#publish({ kind: 'events', events: [event] });
    await instance.close();
    if (kept.onExit === 'sweep') this.#swept = this.#sweep(instance.marks);
  }

  /** Ends what outlived the top-level process of a terminal that was created so. */
  async #sweep(marks: TreeMarks): Promise<void> {
    const left = await endTree(marks, { signals: ['SIGHUP', 'SIGKILL'], graceMs: KILL_GRACE_MS });
    const { owner, id } = this.#record;
    if (left.length > 0) {
      this.context.log.warn({ owner, id, survivors: left.length }, 'processes outlived the sweep');
    }
  }

  async update(spec: UpdateSpec): Promise<void> {
    const { title, labels } = spec;
    await this.#save(
      {
        ...this.#record,
        ...(title !== undefined && { title }),
        ...(labels !== undefined && { labels }),
      },
      true,
    );
  }

  async remove(): Promise<void> {
    if (this.#starting || this.#runs) throw stillRunning();
    await this.#ended;
    await this.#persisted;
    const bytes = await logBytes(this.dir);
    await removeResource(this.dir);
    this.context.logQuota.add(this.#record.owner, -bytes);
    for (const queue of this.#subscribers) queue.end();
  }

  /** Resolves when no instance runs and the exit of the last one is on disk. */
  async exited(): Promise<void> {
    await this.#ended;
  }

  async openOutput(signal: AbortSignal): Promise<LiveOutput> {
    const { next } = await this.#seqRange();
    const queue = new AsyncQueue<LiveItem>(MAX_SUBSCRIBER_BYTES, outputBytes);
    const end = () => {
      this.#subscribers.delete(queue);
      queue.end();
    };
    this.#subscribers.add(queue);
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    return { nextSeq: this.#instance ? this.#publishedNext : next, items: queue };
  }

  attach(spec: AttachmentSpec): InputChannel {
    const attachment = this.#attachments.open(spec, this.context.now());
    const opening = attachment.opening;
    // What an older stream of it has queued must not be taken after `taken` was told.
    this.#instance?.dropRefused();
    return {
      attachmentId: attachment.id,
      resumed: opening > 1,
      get taken() {
        return attachment.taken;
      },
      send: (data, lease) => this.#send(attachment, opening, data, lease),
      [Symbol.asyncDispose]: async () => {
        this.#attachments.close(attachment, opening);
        this.#instance?.dropRefused();
      },
    };
  }

  async #send(
    attachment: Attachment,
    opening: number,
    data: Uint8Array,
    lease: Lease,
  ): Promise<number> {
    if (attachment.opening !== opening) throw streamEnded();
    attachment.wrote = true;
    await this.#running().send(
      data,
      () => (attachment.opening === opening ? this.context.leases.refusal(lease) : streamEnded()),
      (bytes) => {
        attachment.taken += bytes;
      },
    );
    return attachment.taken;
  }

  async write({ data, lease }: WriteSpec): Promise<WriteResult> {
    const instance = this.#running();
    const { lastSeq } = instance;
    await instance.send(
      data,
      () => this.context.leases.refusal(lease),
      () => {},
    );
    return { lastSeq };
  }

  async resize(size: TerminalSize, lease: Lease): Promise<void> {
    const instance = this.#running();
    this.context.leases.check(lease);
    if (instance.resize(size)) await this.#save({ ...this.#record, size }, false);
  }

  async signal(name: SignalName, lease: Lease): Promise<SignalResult> {
    return this.#running().signal(name, () => this.context.leases.check(lease));
  }

  async foreground(): Promise<ForegroundState> {
    return this.#running().foreground();
  }

  stop(graceMs: number, lease: Lease): Promise<EndResult> {
    return this.#end(['SIGTERM', 'SIGHUP'], graceMs, lease);
  }

  kill(lease: Lease): Promise<EndResult> {
    return this.#end(['SIGKILL'], KILL_GRACE_MS, lease);
  }

  /** Rejects queued input under leases that do not hold any more. */
  dropRefused(): void {
    this.#instance?.dropRefused();
  }

  /** Ends what runs, waits until that is on record, and lets go of everything. */
  async shutDown(graceMs: number): Promise<void> {
    const instance = this.#instance;
    if (instance) {
      await endTree(instance.marks, { signals: ['SIGTERM', 'SIGHUP', 'SIGKILL'], graceMs });
      // A record that the disk still refuses is left to the next supervisor, which completes it.
      if (this.#paused) this.#abandoned.abort();
      if (this.#paused) await instance.close();
      await this.#ended;
    }
    await this.#swept;
    for (const queue of this.#subscribers) queue.end();
  }

  async #end(signals: readonly SignalName[], graceMs: number, lease: Lease): Promise<EndResult> {
    this.context.leases.check(lease);
    const marks = this.#instance?.marks ?? this.#lastMarks();
    const survivors = marks ? await endTree(marks, { signals, graceMs }) : [];
    // On a full disk the exit is on record later than the process is gone; the answer does not wait.
    if (!survivors.some(({ pid }) => pid === marks?.pid)) {
      await Promise.race([this.#ended, delay(EXIT_RECORD_MS, undefined, { ref: false })]);
    }
    const { exit } = this.#record;
    return {
      survivors: survivors.map(({ pid, comm }) => ({ pid, comm })),
      quiescent: survivors.length === 0,
      certain: false,
      ...(exit && { exit }),
    };
  }

  /** Of an instance that has exited: what outlived it is found by them. */
  #lastMarks(): TreeMarks | undefined {
    const { marks, pid } = this.#record;
    if (!marks || pid === undefined || marks.bootId !== this.context.bootId) return undefined;
    return { pid, startTime: marks.startTime, sessionId: pid, ttyDevice: 0, nonce: marks.nonce };
  }

  #running(): Instance {
    if (!this.#instance) throw terminalExited();
    return this.#instance;
  }

  #publish(item: LiveItem): void {
    if (item.kind === 'events') {
      this.#publishedNext = (item.events.at(-1)?.seq ?? this.#publishedNext - 1) + 1;
    }
    for (const queue of this.#subscribers) {
      if (queue.push(item)) continue;
      this.#subscribers.delete(queue);
      queue.fail(
        new GranttyError('SUPERVISOR_UNAVAILABLE', 'too far behind the live output; read the log'),
      );
    }
  }

  #unwritable(failure: { readonly error: unknown } | undefined): void {
    const paused = failure && pauseOf(failure.error);
    if (paused === this.#paused) return;
    this.#paused = paused;
    const { owner, id } = this.#record;
    if (failure) {
      this.context.log.error({ owner, id, paused, err: failure.error }, 'output is held back');
    } else {
      this.context.log.info({ owner, id }, 'output goes on');
    }
    this.context.changed(this);
  }

  async #seqRange(): Promise<{ readonly first: number; readonly next: number }> {
    const instance = this.#instance;
    if (instance) return { first: instance.firstSeq, next: this.#publishedNext };
    this.#seqs ??= measureLog(this.dir, this.context).catch((error: unknown) => {
      this.#seqs = undefined;
      throw error;
    });
    return this.#seqs;
  }

  /** The record is this one from now on; resolves when it is on disk (`durable`: through a power cut). */
  async #save(record: TerminalRecord, durable: boolean): Promise<void> {
    const updated = { ...record, updatedAt: this.context.now() };
    this.#record = updated;
    const written = this.#persisted.then(() => writeRecord(this.dir, updated, { sync: durable }));
    this.#persisted = written.catch(() => {});
    await written;
    this.context.changed(this);
  }
}

function streamEnded(): GranttyError {
  return fieldInvalid(
    'attachment_id',
    'this stream of the attachment has ended, or another one has resumed it',
  );
}

function pauseOf(error: unknown): NonNullable<TerminalSnapshot['paused']> {
  const isQuota = error instanceof GranttyError && error.reason === 'QUOTA_LOG_BYTES';
  return isQuota ? 'log-quota' : 'log-unwritable';
}

function stillRunning(): GranttyError {
  return new GranttyError('TERMINAL_EXISTS', 'the terminal is running; stop it first');
}

function outputBytes(item: LiveItem): number {
  if (item.kind === 'resized') return 1;
  return item.events.reduce(
    (sum, event) => sum + (event.type === 'pty.output' ? event.data.length : 1),
    0,
  );
}

/** Opens the log, which repairs it, and looks at its ends. */
async function measureLog(
  dir: string,
  context: SupervisorContext,
): Promise<{ readonly first: number; readonly next: number }> {
  const log = await EventLog.open(dir, context.logOptions);
  const range = { first: log.firstSeq, next: log.nextSeq };
  await log.close();
  return range;
}
