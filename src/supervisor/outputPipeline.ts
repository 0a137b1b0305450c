/** From PTY reads to the log to whoever watches: batches, writes, then publishes, in that order. */
import type {
  ExitEvent,
  ExitStatus,
  OutputEvent,
  TerminalEvent,
  TerminalSize,
} from '../core/event.js';
import { MAX_EVENT_DATA_BYTES, MAX_UNLOGGED_BYTES } from '../core/limits.js';
import { Loan } from '../core/loan.js';
import type { LiveItem } from './api.js';
import { type Pending, PendingOutput } from './pendingOutput.js';
import { untilWritten } from './untilWritten.js';

/** Bytes that make a batch a large one: a full read of the kernel's PTY. Round trips stay below it. */
const FLOOD_BYTES = 4095;
/** Milliseconds: what comes this soon after a large batch belongs to a flood, on a busy host too … */
const FLOOD_GAP_MS = 20;
/** … and waits this long for more, so that batches fill up. */
const FLOOD_WAIT_MS = 2;

/** Made once: each takes a look at the stack. */
const STOPPED = new Error('the pipeline was stopped');

/** What the pipeline needs of a log; `EventLog` is one. */
export interface OutputLog {
  readonly nextSeq: number;
  append(events: readonly TerminalEvent[]): Promise<void>;
  sync(): Promise<void>;
}

export interface PipelineOptions {
  readonly log: OutputLog;
  /** Ordinal of the instance whose output this is. */
  readonly instance: number;
  /** Size at the start; stated with the first output. */
  readonly size: TerminalSize;
  /** Called for each written batch, before anybody sees it, when the log is to be durable first. */
  readonly durable: () => Promise<void>;
  readonly publish: (item: LiveItem) => void;
  /** Too much waits for the log, or no longer. */
  readonly pause: (paused: boolean) => void;
  /** The log could not be written; undefined when it can again. */
  readonly unwritable: (failure: { readonly error: unknown } | undefined) => void;
  readonly nowMicros: () => number;
}

/**
 * One write is in flight at a time and what arrives meanwhile is the next batch; in a flood a batch
 * also waits up to 2 ms to fill 64 KiB, while a lone keystroke's echo is written at once. What
 * cannot be written stays here and is tried again, and above 4 MiB the PTY is paused: nothing is
 * dropped, and nothing is published that was not written.
 */
export class OutputPipeline {
  readonly #options: PipelineOptions;
  readonly #pending = new PendingOutput();
  /** Taken from `#pending` and not written yet. */
  #inFlightBytes = 0;
  #paused = false;
  /** Stated with the next output event. */
  #sizeToState: TerminalSize | undefined;
  #lastBatchAt = 0;
  #lastBatchBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #writing = false;
  #idle: (() => void) | undefined;
  /** Seq of the last event that was formed, written yet or not. */
  #lastAssigned: number;
  readonly #stop = new AbortController();

  constructor(options: PipelineOptions) {
    this.#options = options;
    this.#sizeToState = options.size;
    this.#lastAssigned = options.log.nextSeq - 1;
  }

  /** Seq of the last event of which bytes were read by now. */
  get lastSeq(): number {
    return this.#lastAssigned + this.#pending.events;
  }

  /** The same, and what is read from now on gets a higher one. */
  cut(): number {
    this.#pending.cut();
    return this.lastSeq;
  }

  get #unloggedBytes(): number {
    return this.#inFlightBytes + this.#pending.bytes;
  }

  /** Copies `chunk`. */
  push(chunk: Uint8Array): void {
    this.#pending.push(chunk);
    if (!this.#paused && this.#unloggedBytes >= MAX_UNLOGGED_BYTES) this.#setPaused(true);
    this.#schedule();
  }

  /** Output pushed from now on was printed at this size. */
  resized(size: TerminalSize): void {
    this.#pending.resized(size);
    this.#schedule();
  }

  /**
   * Writes what is pending, then the exit, durably. The exit itself is not published: its caller
   * does, when the record says so too. Undefined when the pipeline was stopped first.
   */
  async finish(exit: ExitStatus): Promise<ExitEvent | undefined> {
    await this.#drained();
    const { log, instance, nowMicros } = this.#options;
    const event: ExitEvent = {
      type: 'process.exit',
      seq: log.nextSeq,
      timeMicros: nowMicros(),
      ...exit,
      ...(instance > 1 && { instance }),
    };
    await this.#untilWritten(() => log.append([event]));
    return (await this.#untilWritten(() => log.sync())) ? event : undefined;
  }

  async #drained(): Promise<void> {
    if (this.#timer) this.#flushNow();
    if (this.#stop.signal.aborted || (!this.#writing && this.#pending.isEmpty)) return;
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
    });
  }

  /** Gives up what could not be written. */
  stop(): void {
    this.#stop.abort(STOPPED);
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#idle?.();
  }

  #schedule(): void {
    if (this.#writing || this.#stop.signal.aborted) return;
    const flood =
      this.#lastBatchBytes >= FLOOD_BYTES && performance.now() - this.#lastBatchAt < FLOOD_GAP_MS;
    // One more full read would not fit the event.
    const full = this.#pending.bytes + FLOOD_BYTES > MAX_EVENT_DATA_BYTES;
    if (!flood || full) this.#flushNow();
    else this.#timer ??= setTimeout(() => this.#flushNow(), FLOOD_WAIT_MS);
  }

  #flushNow(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    void this.#flush();
  }

  async #flush(): Promise<void> {
    this.#writing = true;
    this.#inFlightBytes = this.#pending.bytes;
    const taken = this.#pending.take();
    const { log, durable, publish } = this.#options;
    const { items, events } = this.#batch(taken);
    if (events.length > 0) {
      this.#lastAssigned = log.nextSeq - 1 + events.length;
      await this.#untilWritten(() => log.append(events));
      await this.#untilWritten(durable);
    }
    if (this.#stop.signal.aborted) return;
    for (const item of items) publish(item);
    this.#lastBatchAt = performance.now();
    this.#lastBatchBytes = this.#inFlightBytes;
    this.#inFlightBytes = 0;
    this.#writing = false;
    if (this.#paused && this.#unloggedBytes < MAX_UNLOGGED_BYTES / 2) this.#setPaused(false);
    if (this.#pending.isEmpty) this.#idle?.();
    else this.#schedule();
  }

  #untilWritten(step: () => Promise<void>): Promise<boolean> {
    return untilWritten(step, this.#stop.signal, this.#options.unwritable);
  }

  /** The events of what was pending, and what is published of them: a size stands between two runs. */
  #batch(pending: readonly Pending[]): { items: LiveItem[]; events: OutputEvent[] } {
    const { log, instance, nowMicros } = this.#options;
    const timeMicros = nowMicros();
    const items: LiveItem[] = [];
    const events: OutputEvent[] = [];
    let run: OutputEvent[] = [];
    let loans: Loan[] = [];
    const endRun = () => {
      if (run.length > 0) items.push({ kind: 'events', events: run, ...allOf(loans) });
      run = [];
      loans = [];
    };
    for (const entry of pending) {
      if (entry.kind === 'resized') {
        endRun();
        this.#sizeToState = entry.size;
        items.push({ kind: 'resized', size: entry.size });
        continue;
      }
      const event: OutputEvent = {
        type: 'pty.output',
        seq: log.nextSeq + events.length,
        timeMicros,
        data: entry.data,
        ...(this.#sizeToState && { size: this.#sizeToState }),
        ...(instance > 1 && { instance }),
      };
      this.#sizeToState = undefined;
      events.push(event);
      run.push(event);
      if (entry.loan) loans.push(entry.loan);
    }
    endRun();
    return { items, events };
  }

  #setPaused(paused: boolean): void {
    this.#paused = paused;
    this.#options.pause(paused);
  }
}

/** One loan that stands for several. */
function allOf(loans: readonly Loan[]): { readonly loan?: Loan } {
  const [first, ...others] = loans;
  if (first === undefined || others.length === 0) return first ? { loan: first } : {};
  return {
    loan: new Loan(() => {
      for (const { release } of loans) release();
    }),
  };
}
