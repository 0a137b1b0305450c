/**
 * One client's way through a terminal's events: live while it keeps up, else a reader of the log at
 * its own place. Both Watch and Attach deliver by it.
 */
import { GranttyError } from '../core/errors.js';
import type { TerminalEvent, TerminalSize } from '../core/event.js';
import { isLive } from '../core/terminal.js';
import type { LogReader } from '../store/reader/logReader.js';
import type { Supervisor, TerminalKey } from '../supervisor/api.js';
import type { Clock } from './clock.js';
import { type Ending, endingOf, endOfHistory, exited } from './ending.js';
import { notFound } from './errors.js';
import type { Feed, LiveSink } from './hub.js';
import type { Outlet } from './outlet.js';
import { Pulse } from './pulse.js';
import type { Standing } from './standing.js';
import { Cancelled } from './status.js';
import { type EncodedEvent, type EncodedResize, encodeEvent } from './streamEvents.js';

/**
 * Bytes that may wait for one client. Above it the client is behind: it gets no live output, and the
 * log is read for it no further until it has taken all but `LOW_PENDING_BYTES`.
 */
const MAX_PENDING_BYTES = 1024 * 1024;
const LOW_PENDING_BYTES = 256 * 1024;

export interface DeliveryOptions {
  readonly key: TerminalKey;
  /** Seq of the last event that the client has. */
  readonly after: number;
  /** Where output comes from when the client is up to date; absent: it wants no more than history. */
  readonly feed: Feed | undefined;
  /** Where history ends for who has no feed. */
  readonly through: number;
  /** Whether to end with the exit of the latest instance. */
  readonly untilExit: boolean;
  readonly out: Outlet;
  readonly standing: Standing;
  readonly supervisor: Supervisor;
  readonly clock: Clock;
  readonly openLog: () => Promise<LogReader>;
  /** Aborts when the call is over. */
  readonly over: AbortSignal;
  /** Aborts, with an error as its reason, when the server ends the stream. */
  readonly stop: AbortSignal;
}

export class Delivery implements LiveSink {
  /** Seq of the last event sent, or where the client began. */
  #cursor: number;
  #size: TerminalSize | undefined;
  /** An exit may have been the last event: the record has to be looked at. */
  #mayHaveEnded = true;
  /** Set while live: leaves, so that the loop looks at everything anew. */
  #leaveLive: (() => void) | undefined;
  #log: LogReader | undefined;
  readonly #pulse: Pulse;

  /** To be run at once: it says from now on that it lives. */
  constructor(private readonly options: DeliveryOptions) {
    const { after, clock, out, standing, feed, through } = options;
    this.#cursor = after;
    this.#pulse = new Pulse({
      clock,
      out,
      notAfter: () => standing.notAfter,
      lastSeq: () => feed?.lastSeq ?? through,
      onEnd: () => this.#pause(),
    });
  }

  get lastSeq(): number {
    return this.#cursor;
  }

  /** Looks at once whether the stream may go on: its authority or the server may have changed. */
  look(): void {
    this.#pause();
    this.#pulse.beat();
  }

  /** Has the loop go round once more, from wherever it waits. */
  #pause(): void {
    this.#leaveLive?.();
    this.options.out.nudge();
  }

  /**
   * Delivers until the stream's end and says which it was.
   * @throws what no ending stands for; Cancelled when the call is over before
   */
  async run(): Promise<Ending> {
    using _pulse = this.#pulse;
    const { over, stop } = this.options;
    const look = () => this.look();
    over.addEventListener('abort', look);
    stop.addEventListener('abort', look);
    try {
      return await this.#deliver();
    } catch (error) {
      if (over.aborted) throw new Cancelled();
      const ending = endingOf(error);
      if (ending === undefined) throw error;
      return ending;
    } finally {
      over.removeEventListener('abort', look);
      stop.removeEventListener('abort', look);
      await this.#log?.close();
    }
  }

  async #deliver(): Promise<Ending> {
    const { feed, through, untilExit, over, stop, standing } = this.options;
    while (!over.aborted) {
      stop.throwIfAborted();
      if (await standing.uphold()) this.#pulse.beat();

      // Behind: the log has what is missing.
      const last = feed?.lastSeq ?? through;
      if (this.#cursor < last) {
        await this.#catchUp(last);
        continue;
      }

      // Up to date, and nobody wants more.
      if (feed === undefined) return endOfHistory;
      if (untilExit && this.#mayHaveEnded) {
        this.#mayHaveEnded = false;
        if (await this.#hasEnded()) return exited;
        continue;
      }

      // No more comes.
      if (feed.end !== undefined) return await this.#endOfFeed(feed.end.error);

      // Live. Nothing was awaited since the cursor was compared with the feed's, so nothing is missed.
      if (this.#mayGoOn()) await this.#live(feed);
    }
    throw new Cancelled();
  }

  /** Reads the log through `last`, at the client's pace. */
  async #catchUp(last: number): Promise<void> {
    const { openLog, out, over, standing } = this.options;
    const before = this.#cursor;
    this.#log ??= await openLog();
    // Encoded where they are read, so that an output has no other memory than its message.
    const encode = (event: TerminalEvent) => encodeEvent(event);
    for await (const { items, lastSeq } of this.#log.readAs(before + 1, last, encode, over)) {
      for (const event of items) {
        while (out.pendingBytes > MAX_PENDING_BYTES && this.#mayGoOn()) {
          await out.drained(LOW_PENDING_BYTES);
        }
        if (!this.#mayGoOn()) return;
        this.#send(event);
        event.loan?.release();
      }
      this.#cursor = lastSeq;
      if (!standing.holds()) return;
    }
    // What was announced has been written: a gap would be told as if it were not one.
    if (this.#cursor === before) throw new Error(`the log has no event after seq ${before}`);
  }

  #mayGoOn(): boolean {
    const { over, stop, standing } = this.options;
    return !over.aborted && !stop.aborted && standing.holds();
  }

  /** Resolves when this client is behind, an exit was sent, or there is something to look at. */
  #live(feed: Feed): Promise<void> {
    if (feed.resize) this.resized(feed.resize);
    return new Promise((resolve) => {
      this.#leaveLive = () => {
        this.#leaveLive = undefined;
        feed.live.delete(this);
        resolve();
      };
      feed.live.add(this);
    });
  }

  events(batch: readonly EncodedEvent[]): void {
    const { out, untilExit } = this.options;
    for (const event of batch) {
      if (out.pendingBytes > MAX_PENDING_BYTES || !this.#mayGoOn()) {
        this.#leaveLive?.();
        return;
      }
      this.#send(event);
    }
    if (untilExit && this.#mayHaveEnded) this.#leaveLive?.();
  }

  resized(resize: EncodedResize): void {
    if (this.#size?.cols === resize.size.cols && this.#size.rows === resize.size.rows) return;
    this.#size = resize.size;
    this.#pulse.send(resize.message);
  }

  ended(): void {
    this.#leaveLive?.();
  }

  #send(event: EncodedEvent): void {
    const { message, loan } = event;
    if (event.resized) this.resized(event.resized);
    this.#cursor = event.seq;
    if (event.isExit) this.#mayHaveEnded = true;
    loan?.hold();
    this.#pulse.send(message, loan?.release);
  }

  /** Whether the latest instance has ended and all of it was delivered. @throws when it was deleted */
  async #hasEnded(): Promise<boolean> {
    const { supervisor, key, over } = this.options;
    const terminal = await supervisor.get(key);
    if (terminal === undefined) throw notFound();
    if (isLive(terminal.record.state)) return false;
    // The record may say so a moment before the last event is out.
    const ended = await supervisor.exited(key, over);
    return !isLive(ended.record.state) && ended.nextSeq - 1 <= this.#cursor;
  }

  /** The supervisor gives no more: because the terminal is gone, or because it is itself. */
  async #endOfFeed(error: unknown): Promise<never> {
    if (error !== undefined) throw error;
    const { supervisor, key } = this.options;
    if ((await supervisor.get(key)) === undefined) throw notFound();
    throw new GranttyError('SUPERVISOR_UNAVAILABLE', 'the supervisor has stopped; resume later');
  }
}
