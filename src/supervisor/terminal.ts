/** One terminal resource: its record, who follows it, and the process instance it may have. */
import { GranttyError } from '../core/errors.js';
import type { TerminalSize } from '../core/event.js';
import { Latch } from '../core/latch.js';
import type { SignalName } from '../core/signals.js';
import type { TerminalRecord } from '../core/terminal.js';
import { EventLog } from '../store/eventLog.js';
import { logBytes } from '../store/logParts.js';
import { readEnvironment } from '../store/metadata.js';
import type { SeqRange } from '../store/recoveredResource.js';
import { removeResource } from '../store/resourceRemoval.js';
import type { Place } from './admission.js';
import type {
  AttachmentSpec,
  EndResult,
  ForegroundState,
  InputChannel,
  Lease,
  LiveOutput,
  SignalResult,
  StartSpec,
  TerminalSnapshot,
  UpdateSpec,
  WriteResult,
  WriteSpec,
} from './api.js';
import type { SupervisorContext } from './context.js';
import { HeldRecord } from './heldRecord.js';
import { Instance, prepareLaunch, stillRunning, terminalExited } from './instance.js';
import type { LifeLimits } from './instanceLife.js';
import { exitedRecord, plannedRecord, runningRecord } from './instanceRecord.js';
import {
  endInstance,
  KILL_GRACE_MS,
  recordedMarks,
  stopThenKill,
  sweepTree,
} from './instanceTree.js';
import { OutputPause } from './outputPause.js';
import { SelfEnding } from './selfEnding.js';
import { Subscribers } from './subscribers.js';
import { TerminalInput } from './terminalInput.js';
import { TerminalLog } from './terminalLog.js';
import { untilWritten } from './untilWritten.js';

const UNSOUND_CLOSE = 'the log could not be closed in order';

export function noSuchTerminal(): GranttyError {
  return new GranttyError('TERMINAL_NOT_FOUND', 'there is no such terminal');
}

/** What is known of a terminal whose directory was just made, and holds nothing else. */
export interface JustMade {
  readonly place: Place;
  /** As it is stored. */
  readonly env: Readonly<Record<string, string>>;
}

export class Terminal {
  readonly #held: HeldRecord;
  #instance: Instance | undefined;
  /** Resolves when the exit of the latest instance is on disk and published, and its log closed. */
  #ended: Promise<void> = Promise.resolve();
  /** Released when it is on disk and published; absent before the first instance. */
  #exit: Latch | undefined;
  /** Resolves when the sweep after the latest exit, if there was one, is over. */
  #swept: Promise<void> = Promise.resolve();
  #starting = false;
  /** Resolves when no update is under way: one at a time, so that one that fails can be undone. */
  #updated: Promise<void> = Promise.resolve();
  /** From the first step of its removal on; for good once it is removed. */
  #removing = false;
  /** Of the instance. */
  #selfEnding: SelfEnding | undefined;
  readonly #abandoned = new AbortController();
  readonly #subscribers = new Subscribers();
  readonly #input: TerminalInput;
  readonly #pause: OutputPause;
  readonly #log: TerminalLog;

  constructor(
    private readonly context: SupervisorContext,
    readonly dir: string,
    record: TerminalRecord,
    /** Of its log, where they are known. */
    seqs?: SeqRange,
  ) {
    this.#log = new TerminalLog(dir, context, seqs);
    this.#input = new TerminalInput(context.leases, context.now, () => this.#instance);
    this.#pause = new OutputPause(context, this);
    this.#held = new HeldRecord(dir, record, context.now, () => context.changed(this));
  }

  get record(): TerminalRecord {
    return this.#held.value;
  }

  /** An instance whose exit is not on record yet. */
  get #runs(): boolean {
    return this.#instance !== undefined && this.record.exit === undefined;
  }

  /** Of a terminal whose log cannot be opened too: its record, and no events. */
  async snapshot(): Promise<TerminalSnapshot> {
    const { first, next } = await this.#seqRange().catch((error: unknown) => {
      this.#report(error, 'the log cannot be opened');
      return { first: 1, next: 1 };
    });
    return {
      record: this.record,
      firstSeq: first,
      nextSeq: next,
      attachments: this.#input.attachments(),
      ...(this.#pause.reason && { paused: this.#pause.reason }),
    };
  }

  /**
   * Starts the next instance; the first one in the place that was taken for it. Resolves when
   * the child runs and the record says so.
   * @throws COMMAND_NOT_FOUND, CWD_INVALID, FIELD_INVALID, QUOTA_TERMINALS, QUOTA_LOG_BYTES,
   * TERMINAL_EXISTS (it runs), TERMINAL_NOT_FOUND (it is being removed)
   */
  async start(spec: StartSpec, made?: JustMade): Promise<void> {
    this.#checkStays();
    if (this.#starting || this.#runs) throw stillRunning();
    this.context.logQuota.check(this.record.owner);
    this.#starting = true;
    let place = made?.place;
    try {
      await this.#ended;
      await this.#log.settled();
      place ??= this.context.admission.enter(this.record.owner);
      await this.#start(spec, place, made?.env);
    } catch (error) {
      if (!this.#instance) place?.[Symbol.dispose]();
      throw error;
    } finally {
      this.#starting = false;
    }
  }

  /** `newEnv`: of a directory that was just made. */
  async #start(spec: StartSpec, place: Place, newEnv: JustMade['env'] | undefined): Promise<void> {
    const { context, dir } = this;
    const size = spec.size ?? this.record.size;
    const env = newEnv ?? (await readEnvironment(dir));
    const launch = await prepareLaunch(context, { ...this.record, size }, env, spec.cwdUnder);
    const marks = { nonce: launch.nonce, startTime: 0, bootId: context.bootId };
    const opening = newEnv
      ? EventLog.begin(dir, context.logOptions)
      : EventLog.open(dir, context.logOptions);
    const log = await opening.catch(async (error: unknown) => {
      await launch.cgroup?.remove();
      throw error;
    });
    // Not sooner: title and labels may change at any time, until the end of this too.
    const before = this.record;
    const planned = plannedRecord(before, spec);
    let instance: Instance;
    try {
      // Before the fork, so that whoever recovers from a crash finds the child by its nonce.
      await this.#held.save({ ...planned, marks }, false);
      instance = new Instance(context, planned, launch, log, {
        publish: (item) => this.#subscribers.publish(item),
        unwritable: (error) => this.#pause.report(error),
      });
    } catch (error) {
      await log.close().catch((cause: unknown) => this.#report(cause, UNSOUND_CLOSE));
      await launch.cgroup?.remove();
      const { title, labels } = this.record;
      await this.#held.save({ ...before, title, labels }, false).catch((cause: unknown) => {
        this.#report(cause, 'the record from before a start that failed could not be written');
      });
      throw error;
    }
    this.#instance = instance;
    this.#selfEnding = new SelfEnding(context, before, instance);
    this.#subscribers.nextSeq = instance.nextSeq;
    const exit = new Latch();
    this.#exit = exit;
    this.#ended = this.#finish(instance, place, exit).finally(() => exit.release());
    const here = { bootId: context.bootId, socket: context.locator(planned) };
    try {
      // Nothing is awaited before this, so that it comes before whatever the exit records.
      await this.#held.save(runningRecord(this.record, instance.marks, here), true);
    } catch (error) {
      // Its end is put on record as soon as that can be done.
      await stopThenKill(instance.marks, 0).catch((cause: unknown) => {
        this.#report(cause, 'a terminal that could not be put on record could not be ended');
      });
      throw error;
    }
    await instance.onTerminal();
  }

  /** Records the exit, tells everybody, hangs up: in that order. */
  async #finish(instance: Instance, place: Place, exit: Latch): Promise<void> {
    const event = await instance.exit;
    if (!event) return;
    const saved = await untilWritten(
      // Formed anew each time: title and labels may change between two attempts.
      () => this.#held.save(exitedRecord(this.record, event), true),
      this.#abandoned.signal,
      (failure) => this.#pause.report(failure),
    );
    if (!saved) return;
    this.#log.rest({ first: instance.firstSeq, next: instance.nextSeq });
    this.#instance = undefined;
    this.#selfEnding = undefined;
    place[Symbol.dispose]();
    this.#subscribers.publish({ kind: 'events', events: [event] });
    exit.release();
    await instance.close().catch((error: unknown) => this.#report(error, UNSOUND_CLOSE));
    if (this.record.onExit === 'sweep') {
      this.#swept = sweepTree(instance.marks, this.context.log, this.record).catch(
        (error: unknown) => this.#report(error, 'what outlived the terminal could not be swept'),
      );
    }
  }

  /**
   * What cannot be written is not so: what was before stays.
   * @throws TERMINAL_NOT_FOUND (it is being removed)
   */
  async update(spec: UpdateSpec): Promise<void> {
    this.#checkStays();
    const done = this.#updated.then(() => this.#update(spec));
    this.#updated = done.catch(() => {});
    await done;
  }

  async #update(spec: UpdateSpec): Promise<void> {
    const { title, labels } = this.record;
    try {
      const updated = { title: spec.title ?? title, labels: spec.labels ?? labels };
      await this.#held.save({ ...this.record, ...updated }, true);
    } catch (error) {
      await this.#held.save({ ...this.record, title, labels }, false).catch(() => {});
      throw error;
    }
  }

  /** @throws TERMINAL_EXISTS (it runs), TERMINAL_NOT_FOUND (it is being removed) */
  async remove(): Promise<void> {
    this.#checkStays();
    if (this.#starting || this.#runs) throw stillRunning();
    this.#removing = true;
    try {
      await this.#ended;
      await this.#updated;
      await this.#held.settled();
      // One that cannot be opened goes too.
      await this.#log.settled().catch(() => {});
      const bytes = await logBytes(this.dir);
      await removeResource(this.dir, this.context.log);
      this.context.logQuota.add(this.record.owner, -bytes);
    } catch (error) {
      this.#removing = false;
      throw error;
    }
    await recordedMarks(this.record, this.context)?.cgroup?.remove();
    this.#subscribers.end();
  }

  /** Resolves when no instance runs and the exit of the last one is on disk. */
  async exited(signal: AbortSignal): Promise<void> {
    await this.#exit?.wait(signal);
  }

  async openOutput(signal: AbortSignal): Promise<LiveOutput> {
    const { next } = await this.#seqRange();
    const items = this.#subscribers.open(signal);
    return { nextSeq: this.#instance ? this.#subscribers.nextSeq : next, items };
  }

  attach(spec: AttachmentSpec): InputChannel {
    return this.#input.attach(spec);
  }

  write(spec: WriteSpec): Promise<WriteResult> {
    return this.#input.write(spec);
  }

  async resize(size: TerminalSize, lease: Lease): Promise<void> {
    const instance = this.#running();
    this.context.leases.check(lease);
    if (instance.resize(size)) await this.#held.save({ ...this.record, size }, false);
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
    this.#input.dropRefused();
  }

  /** Removes parts of the log that were complete before that time; its end stays. */
  async trimLog(before: number): Promise<void> {
    const { owner } = this.record;
    if (this.#starting || this.#removing) return;
    if (await this.#log.trim(before, owner, this.#instance)) this.context.changed(this);
  }

  /** Ends an instance that has lived, or gone without use, for longer than it may. */
  holdToLife(limits: LifeLimits, now: number): void {
    const isHeld = this.#pause.reason !== undefined || this.#input.attachments().length > 0;
    const inputBytes = this.#input.takenBytes;
    this.#selfEnding?.holdToLife(limits, { isHeld, inputBytes }, now);
  }

  /** Ends what runs, waits until that is on record, and lets go of everything. */
  async shutDown(): Promise<void> {
    try {
      if (this.#instance) {
        await this.#selfEnding?.end('supervisor-stopped');
        // A record that the disk still refuses is left to the next supervisor, which completes it.
        if (this.#pause.reason) await this.abandon();
        await this.#ended;
      }
      await this.#swept;
    } finally {
      this.#subscribers.end();
    }
  }

  /** Lets go of an instance whose end will not be put on record. */
  async abandon(): Promise<void> {
    this.#abandoned.abort();
    try {
      await this.#instance?.close();
    } finally {
      await this.#ended;
    }
  }

  async #end(signals: readonly SignalName[], graceMs: number, lease: Lease): Promise<EndResult> {
    this.context.leases.check(lease);
    const marks = this.#instance?.marks ?? recordedMarks(this.record, this.context);
    const isConfined = this.context.isolation.mode !== 'shared-uid';
    const spec = { signals, graceMs, isConfined, ended: this.#ended };
    const result = await endInstance(marks, spec);
    const { exit } = this.record;
    return { ...result, ...(exit && { exit }) };
  }

  #running(): Instance {
    if (!this.#instance) throw terminalExited();
    return this.#instance;
  }

  #checkStays(): void {
    if (this.#removing) throw noSuchTerminal();
  }

  /** Of what fails where nobody waits for it, or besides what is told to who waits. */
  #report(error: unknown, what: string): void {
    const { owner, id } = this.record;
    this.context.log.error({ owner, id, err: error }, what);
  }

  async #seqRange(): Promise<SeqRange> {
    const instance = this.#instance;
    if (!instance) return this.#log.range();
    return { first: instance.firstSeq, next: this.#subscribers.nextSeq };
  }
}
