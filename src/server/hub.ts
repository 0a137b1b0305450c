/**
 * Fans live output out: one subscription at the supervisor for each terminal that has a watcher,
 * each event encoded once, whoever keeps up given it at once. It holds no events: who does not keep
 * up reads the log.
 */
import { GranttyError } from '../core/errors.js';
import type { TerminalSize } from '../core/event.js';
import { isLive } from '../core/terminal.js';
import type { LiveItem, LiveOutput, Supervisor, TerminalSnapshot } from '../supervisor/api.js';
import {
  type EncodedEvent,
  type EncodedResize,
  encodeEvent,
  encodeResize,
} from './streamEvents.js';

/** What takes live output. Called in turn for each batch; must not throw and cannot wait. */
export interface LiveSink {
  /** Holds the loan of each event whose message it reads later. */
  events(batch: readonly EncodedEvent[]): void;
  resized(resize: EncodedResize): void;
  /** Nothing follows on what was given: `Feed.lastSeq` has gone ahead, or `Feed.end` says why. */
  ended(): void;
}

type LiveEvents = Extract<LiveItem, { kind: 'events' }>;

/** One terminal's live output, shared by all its watchers. */
export class Feed {
  /** Who is up to date with `lastSeq`. Who is not must not be here. */
  readonly live = new Set<LiveSink>();
  /** Called when `lastSeq` has grown or `end` was set: for who reads the log in any case. */
  readonly moved = new Set<() => void>();
  /** Seq of the last event that has gone out; all up to it can be read from the log. */
  lastSeq = 0;
  /** The latest change of size, as long as no event has come after it. */
  resize: EncodedResize | undefined;
  /** Set when no more comes. Without an error the terminal was deleted or the supervisor stopped. */
  end: { readonly error: unknown } | undefined;

  readonly #stop = new AbortController();
  readonly #opened: Promise<void>;
  #members = 0;

  constructor(
    supervisor: Supervisor,
    snapshot: TerminalSnapshot,
    private readonly onEmpty: () => void,
  ) {
    this.#opened = this.#open(supervisor, snapshot);
  }

  /** Resolves when `lastSeq` holds. The subscription lives until every member has left. */
  async join(): Promise<void> {
    this.#members += 1;
    try {
      await this.#opened;
    } catch (error) {
      this.leave();
      throw error;
    }
  }

  leave(): void {
    this.#members -= 1;
    if (this.#members > 0) return;
    this.#stop.abort();
    this.onEmpty();
  }

  async #open(supervisor: Supervisor, { record }: TerminalSnapshot): Promise<void> {
    const { owner, id, uid } = record;
    const key = { owner, id, uid };
    const subscribe = () => supervisor.openOutput(key, this.#stop.signal);
    const { nextSeq, items } = await subscribe();
    this.lastSeq = nextSeq - 1;
    void this.#pump(items, async () => {
      const output = await subscribe();
      const now = (await supervisor.get(key))?.record;
      // A change of size that came while nobody was subscribed is told as if it came just now.
      const isPrinting = now !== undefined && isLive(now.state);
      this.resize = isPrinting ? encodeResize(now.size, output.nextSeq) : undefined;
      this.lastSeq = output.nextSeq - 1;
      return output.items;
    });
  }

  /**
   * The supervisor ends a subscription that falls behind, as it may on a busy host: that is no end
   * for watchers, who read the log up to where another one begins. One that breaks before it has
   * given anything is not tried again.
   */
  async #pump(
    first: LiveOutput['items'],
    subscribe: () => Promise<LiveOutput['items']>,
  ): Promise<void> {
    let error: unknown;
    for (let items: LiveOutput['items'] | undefined = first; items !== undefined; ) {
      const before = this.lastSeq;
      error = await this.#drain(items);
      items = undefined;
      if (!isUnavailable(error) || this.lastSeq === before) break;
      try {
        items = await subscribe();
      } catch {
        break;
      }
      this.#tellAll();
    }
    this.end = { error };
    this.#tellAll();
  }

  /** Fans out to the end; resolves with the error that it ended with, if any. */
  async #drain(items: LiveOutput['items']): Promise<unknown> {
    try {
      for await (const item of items) {
        if (item.kind === 'resized') this.#fanOutResize(item.size);
        else {
          this.#fanOut(item);
          item.loan?.release();
        }
      }
      return undefined;
    } catch (error) {
      return error;
    }
  }

  /** Has everybody look at `lastSeq` and `end` anew. */
  #tellAll(): void {
    for (const sink of this.live) sink.ended();
    for (const tell of this.moved) tell();
  }

  #fanOut({ events, loan, room }: LiveEvents): void {
    const last = events.at(-1);
    if (last === undefined) return;
    this.lastSeq = last.seq;
    this.resize = undefined;
    for (const tell of this.moved) tell();
    if (this.live.size === 0) return;
    const batch = events.map((event) => encodeEvent(event, loan && { loan, bytes: room ?? 0 }));
    for (const sink of this.live) sink.events(batch);
    for (const encoded of batch) encoded.loan?.release();
  }

  #fanOutResize(size: TerminalSize): void {
    this.resize = encodeResize(size, this.lastSeq + 1);
    for (const sink of this.live) sink.resized(this.resize);
  }
}

export class Hub {
  /** By uid: another incarnation of an id is another feed. */
  readonly #feeds = new Map<string, Feed>();

  constructor(private readonly supervisor: Supervisor) {}

  /** Terminals that are subscribed to now. */
  get size(): number {
    return this.#feeds.size;
  }

  /** The terminal's feed, joined; the caller leaves it when it is done. */
  async join(snapshot: TerminalSnapshot): Promise<Feed> {
    const { uid } = snapshot.record;
    let feed = this.#feeds.get(uid);
    if (feed === undefined || feed.end !== undefined) {
      const fresh: Feed = new Feed(this.supervisor, snapshot, () => {
        if (this.#feeds.get(uid) === fresh) this.#feeds.delete(uid);
      });
      this.#feeds.set(uid, fresh);
      feed = fresh;
    }
    await feed.join();
    return feed;
  }
}

function isUnavailable(error: unknown): boolean {
  return error instanceof GranttyError && error.reason === 'SUPERVISOR_UNAVAILABLE';
}
