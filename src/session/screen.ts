/** One terminal as a person sees it, rendered elsewhere and kept up with its log. */
import { GranttyError } from '../core/errors.js';
import type { LiveItem, TerminalKey } from '../supervisor/api.js';
import type { EventSource, LogRange } from './eventSource.js';
import type { Mirror } from './mirror.js';
import type { QuestionKind, Questions } from './screenProtocol.js';
import { MAX_BEHIND_BYTES, ScreenQueue } from './screenQueue.js';
import type { RemoteEmulator, ScreenWorkers } from './screenWorkers.js';

/** Bytes of one feed, and feeds under way: what the worker holds of one terminal. */
const FEED_BYTES = 64 * 1024;
const MAX_FEEDS = 4;
/** Emulators that may be lost one after the other before it is given up until somebody asks again. */
const MAX_LOSSES = 3;

/** Sees every event of the terminal once, in order, before it is rendered. */
export interface ScreenObserver {
  item(item: LiveItem): void;
  /** More has been rendered. */
  rendered(): void;
  /** Events come no more; the next `resume` may bring them back. */
  failed(error: unknown): void;
}

type ScreenQuestion = Exclude<QuestionKind, 'scan'>;

/**
 * Follows the log while it is resumed. Output that comes faster than it can be rendered is left out
 * but for the last 4 MiB, and answers say so. Whoever made it closes it.
 */
export class Screen {
  readonly #queue = new ScreenQueue();
  readonly #waiters = new Set<Waiter>();
  #emulator: RemoteEmulator | undefined;
  #following: AbortController | undefined;
  /** Seq of the last event put into the queue; undefined before the first start. */
  #queuedSeq: number | undefined;
  /** Seq of the last event that the observer saw. */
  #observedSeq = 0;
  #renderedSeq: number | undefined;
  #feeds = 0;
  #losses = 0;
  #closed = false;
  /** Lines were asked for, or are mirrored: more has to be rendered than a screen shows. */
  #needsLines: boolean;
  /** Only what can be seen on the screen was rendered of what came before it. */
  #screenOnly = false;
  /** Nothing is rendered before this event has come, so that what has to be left out is known. */
  #renderFrom = 0;

  constructor(
    readonly key: TerminalKey,
    private readonly source: EventSource,
    private readonly workers: ScreenWorkers,
    private readonly observer?: ScreenObserver,
    /** Kept as the screen's lines are, a moment later. */
    private readonly mirror?: Mirror,
  ) {
    this.#needsLines = mirror !== undefined;
  }

  /** Follows the log from where it stopped, if it does not already. */
  resume(): void {
    if (this.#following || this.#closed) return;
    const following = new AbortController();
    this.#following = following;
    this.#follow(following.signal).then(
      () => this.#stopped(following, gone()),
      (error: unknown) => this.#stopped(following, error),
    );
  }

  /** Stops following; what has been rendered stays and is gone on from at the next `resume`. */
  pause(): void {
    this.#following?.abort();
    this.#following = undefined;
  }

  close(): void {
    this.#closed = true;
    this.pause();
    this.#reset();
    this.#reject(gone());
  }

  /** Asks about the terminal as it is now: all that its log holds is rendered first. */
  async ask<Kind extends ScreenQuestion>(
    kind: Kind,
    question: Questions[Kind]['ask'],
  ): Promise<Questions[Kind]['answer']> {
    if (kind !== 'screen') this.#needLines();
    const emulator = await this.#upToDate();
    try {
      return await emulator.ask(kind, question);
    } catch (error) {
      // An emulator that was lost is built anew from the log.
      if (this.#emulator === emulator || this.#closed) throw error;
      return (await this.#upToDate()).ask(kind, question);
    }
  }

  /** Resolves when the event of this seq has been rendered, or left out. */
  through(seq: number): Promise<void> {
    if (this.#closed) return Promise.reject(gone());
    if (this.#renderedSeq !== undefined && this.#renderedSeq >= seq) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#waiters.add({ seq, resolve, reject });
      this.resume();
    });
  }

  /** Resolves when all that the log holds now has been rendered. */
  async catchUp(): Promise<void> {
    const { nextSeq } = await this.source.range(this.key);
    await this.through(nextSeq - 1);
  }

  async #upToDate(): Promise<RemoteEmulator> {
    await this.catchUp();
    if (!this.#emulator) throw gone();
    return this.#emulator;
  }

  /** A screen that was rendered for itself alone is rendered anew. */
  #needLines(): void {
    this.#needsLines = true;
    if (!this.#screenOnly) return;
    this.pause();
    this.#reset();
  }

  async #follow(signal: AbortSignal): Promise<void> {
    this.workers.warm();
    const range = await this.source.range(this.key);
    const from = await this.#begin(range, signal);
    if (from === undefined) return;
    this.#emulator ??= this.workers.openEmulator(range.size, {
      rendered: (seq) => this.#rendered(seq),
      lost: (error) => this.#lost(error),
      ...(this.mirror && { mirrored: (update) => this.mirror?.apply(update) }),
    });
    let sizeStated = false;
    const stateSize = () => {
      const queued = this.#queuedSeq ?? 0;
      if (sizeStated || queued < range.nextSeq - 1) return;
      this.#queue.resized(range.size, queued);
      sizeStated = true;
    };
    stateSize();
    this.#renderFrom = range.nextSeq - 1;
    this.#feed(range);
    for await (const item of this.source.follow(this.key, from, signal)) {
      if (signal.aborted) return;
      this.#take(item);
      stateSize();
      this.#feed(range);
    }
  }

  /** Where to read on; what is too far back is noted as left out. */
  async #begin({ firstSeq, nextSeq }: LogRange, signal: AbortSignal): Promise<number | undefined> {
    const wanted = Math.max(firstSeq, (this.#queuedSeq ?? 0) + 1);
    const tail =
      nextSeq > wanted ? await this.source.tailSeq(this.key, MAX_BEHIND_BYTES, nextSeq - 1) : 0;
    if (signal.aborted) return undefined;
    const from = Math.max(wanted, tail);
    this.#queuedSeq = from - 1;
    this.#queue.begin(from - 1, from > wanted ? wanted : undefined);
    return from;
  }

  #take(item: LiveItem): void {
    if (item.kind === 'resized') {
      this.observer?.item(item);
      this.#queue.resized(item.size, this.#queuedSeq ?? 0);
      return;
    }
    for (const event of item.events) this.#queue.push(event);
    this.#queuedSeq = item.events.at(-1)?.seq ?? this.#queuedSeq;
    const unseen = item.events.filter(({ seq }) => seq > this.#observedSeq);
    this.#observedSeq = Math.max(this.#observedSeq, this.#queuedSeq ?? 0);
    if (unseen.length > 0) this.observer?.item({ kind: 'events', events: unseen });
  }

  #feed(range?: LogRange): void {
    if ((this.#queuedSeq ?? 0) < this.#renderFrom) return;
    const isFirst = this.#renderedSeq === undefined && this.#feeds === 0;
    if (isFirst && range && !this.#needsLines) {
      this.#screenOnly = this.#queue.cutToScreen(range.size.rows);
    }
    while (this.#emulator && this.#feeds < MAX_FEEDS && !this.#queue.empty) {
      this.#feeds += 1;
      this.#emulator.feed(this.#queue.take(FEED_BYTES));
    }
  }

  #rendered(seq: number): void {
    this.#feeds -= 1;
    // The mirror may be behind while output keeps coming.
    const reached = this.mirror?.throughSeq ?? seq;
    this.#renderedSeq = reached;
    this.#feed();
    for (const waiter of this.#waiters) {
      if (waiter.seq > reached) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
    this.observer?.rendered();
  }

  /** Builds it anew from the log, unless it is lost again and again. */
  #lost(error: Error): void {
    if (this.#closed) return;
    this.pause();
    this.#reset();
    this.#losses += 1;
    if (this.#losses < MAX_LOSSES && (this.#waiters.size > 0 || this.observer)) this.resume();
    else {
      this.#losses = 0;
      this.#reject(error);
      this.observer?.failed(error);
    }
  }

  #reset(): void {
    this.#emulator?.close();
    this.#emulator = undefined;
    this.mirror?.restart();
    this.#queue.clear();
    this.#feeds = 0;
    this.#screenOnly = false;
    this.#queuedSeq = undefined;
    this.#renderedSeq = undefined;
  }

  #stopped(following: AbortController, error: unknown): void {
    if (this.#following !== following) return;
    this.#following = undefined;
    this.#reject(error);
    this.observer?.failed(error);
  }

  #reject(error: unknown): void {
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const { reject } of waiters) reject(error);
  }
}

interface Waiter {
  readonly seq: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

function gone(): GranttyError {
  return new GranttyError('TERMINAL_NOT_FOUND', 'the terminal has been deleted');
}
