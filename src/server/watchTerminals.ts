/** WatchTerminals: which terminals there are, then what becomes of them, as far as the caller sees them. */
import { createHash } from 'node:crypto';
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import type { TerminalTuple } from '../core/names.js';
import {
  type TerminalFilter,
  type TerminalService,
  WatchTerminalsResponseSchema,
} from '../gen/public/grantty/v1/terminal_service_pb.js';
import type { TerminalChange, TerminalSnapshot } from '../supervisor/api.js';
import type { Call } from './call.js';
import { type ChangeFeed, nothing, openFeed, supervisorStopped } from './changes.js';
import type { ServerContext } from './context.js';
import { endingOf } from './ending.js';
import { close, onRecord } from './eventStream.js';
import { canonicalFilter, type Filter, parseFilter } from './filter.js';
import type { Handlers } from './grpc.js';
import type { OpenStream } from './openStreams.js';
import type { Outlet } from './outlet.js';
import { Outlook } from './outlook.js';
import { callerOf } from './perform.js';
import { Pulse } from './pulse.js';
import type { Sight } from './sight.js';
import { Cancelled } from './status.js';
import { toTerminal } from './wire.js';

/** Bytes that may wait for one client before the next change is taken from the supervisor. */
const MAX_PENDING_BYTES = 1024 * 1024;

type WatchTerminalsHandler = NonNullable<Handlers<typeof TerminalService>['watchTerminals']>;
type Event = NonNullable<MessageInitShape<typeof WatchTerminalsResponseSchema>['event']>;

export function watchTerminals(context: ServerContext): WatchTerminalsHandler {
  const { gate, streams, supervisor } = context;
  return async ({ filter, cursor }, call, out) => {
    const outlook = await Outlook.open(gate, callerOf(call, 'open'));
    await onRecord(context, outlook.sight, out, async () => {
      const conditions = parseFilter(filter);
      const view = viewOf(filter, outlook.sight);
      using stream = streams.open(outlook.sight.token, call);
      const ended = new AbortController();
      try {
        const feed = outlook.sight.reachesAnything
          ? await openFeed(supervisor, supervisorCursor(cursor, view), ended.signal)
          : nothing;
        await new Follower(context, { call, out, stream, outlook, conditions, view, feed }).run();
      } catch (error) {
        if (call.signal.aborted) throw new Cancelled();
        const ending = endingOf(error);
        if (ending === undefined) throw error;
        close(out, ending);
      } finally {
        ended.abort();
      }
    });
  };
}

interface Following {
  readonly call: Call;
  readonly out: Outlet;
  readonly stream: OpenStream;
  readonly outlook: Outlook;
  readonly conditions: Filter;
  readonly view: string;
  readonly feed: ChangeFeed;
}

/** Tells one client of what it may see. */
class Follower {
  /** Terminals that this stream has told of and not taken back, by uid. */
  readonly #told = new Map<string, TerminalTuple>();
  readonly #pulse: Pulse;
  #cursor: string;
  /** Wakes the loop. */
  #look = () => {};
  #cancelNarrowing = () => {};

  constructor(
    private readonly context: ServerContext,
    private readonly following: Following,
  ) {
    const { out, outlook, feed } = following;
    this.#cursor = feed.cursor;
    this.#pulse = new Pulse({
      clock: context.clock,
      out,
      notAfter: () => outlook.sight.notAfter,
      lastSeq: () => 0,
      onEnd: () => this.#wake(),
    });
  }

  /** @throws what ends the stream; it has no other end */
  async run(): Promise<never> {
    const { call, stream, outlook, feed } = this.following;
    const wake = () => this.#wake();
    stream.onRecheck = wake;
    stream.stop.addEventListener('abort', wake);
    call.signal.addEventListener('abort', wake);
    try {
      await this.#start();
      this.#lookWhenNarrower();
      let next = feed.changes.next();
      for (;;) {
        // If the stream ends by something else, this is heard by nobody.
        next.catch(() => {});
        const woken = new Promise<undefined>((resolve) => {
          this.#look = () => resolve(undefined);
        });
        stream.stop.throwIfAborted();
        if (call.signal.aborted) throw new Cancelled();
        if (await outlook.uphold()) await this.#reconcile();

        const change = await Promise.race([next, woken]);
        if (change === undefined) continue;
        if (change.done) throw supervisorStopped();
        this.#tell(change.value);
        await this.#room();
        next = feed.changes.next();
      }
    } finally {
      this.#pulse[Symbol.dispose]();
      this.#cancelNarrowing();
      stream.stop.removeEventListener('abort', wake);
      call.signal.removeEventListener('abort', wake);
    }
  }

  async #start(): Promise<void> {
    const { snapshot } = this.following.feed;
    for (const terminal of snapshot ?? []) {
      if (!this.#shows(terminal)) continue;
      this.#told.set(terminal.record.uid, terminal.record);
      this.#send({ case: 'snapshot', value: { terminal: toTerminal(terminal) } });
      await this.#room();
    }
    const resumed = snapshot === undefined;
    this.#send({ case: 'snapshotEnd', value: { cursor: this.#wireCursor(), resumed } });
  }

  #tell(change: TerminalChange): void {
    this.#cursor = change.cursor;
    switch (change.kind) {
      case 'changed':
        if (this.#shows(change.terminal)) this.#showChanged(change.terminal);
        else this.#takeBack(change.terminal.record, change.terminal.record.uid);
        break;
      case 'removed':
        this.#takeBack(change.tuple, change.uid);
        break;
      case 'snapshot':
        for (const terminal of change.terminals) {
          if (this.#shows(terminal)) this.#showChanged(terminal);
        }
        break;
    }
  }

  /** What is seen has changed though no terminal did. */
  async #reconcile(): Promise<void> {
    this.#pulse.beat();
    this.#lookWhenNarrower();
    const gone = new Map(this.#told);
    for (const terminal of await this.context.supervisor.list(this.following.conditions.owner)) {
      const { uid } = terminal.record;
      if (!this.#shows(terminal)) continue;
      if (!gone.delete(uid)) this.#showChanged(terminal);
      await this.#room();
    }
    for (const [uid, tuple] of gone) this.#takeBack(tuple, uid);
  }

  #shows(terminal: TerminalSnapshot): boolean {
    const { conditions, outlook } = this.following;
    return conditions.terminal(terminal) && outlook.sight.sees(terminal.record);
  }

  #showChanged(terminal: TerminalSnapshot): void {
    this.#told.set(terminal.record.uid, terminal.record);
    const value = { terminal: toTerminal(terminal), cursor: this.#wireCursor() };
    this.#send({ case: 'changed', value });
  }

  /** Of terminals that the client may know from an earlier stream it is told what it may still see. */
  #takeBack(tuple: TerminalTuple, uid: string): void {
    const { feed, outlook } = this.following;
    const mayBeKnown = feed.snapshot === undefined && outlook.sight.sees(tuple);
    if (!this.#told.delete(uid) && !mayBeKnown) return;
    const ref = { owner: tuple.owner, id: tuple.id };
    this.#send({ case: 'removed', value: { ref, uid, cursor: this.#wireCursor() } });
  }

  #send(event: Event): void {
    const message = create(WatchTerminalsResponseSchema, { event });
    this.#pulse.send(toBinary(WatchTerminalsResponseSchema, message));
  }

  /** The client's pace: changes wait at the supervisor, which ends who waits too long. */
  async #room(): Promise<void> {
    const { out, call, stream } = this.following;
    while (out.pendingBytes > MAX_PENDING_BYTES && !call.signal.aborted && !stream.stop.aborted) {
      await out.drained(MAX_PENDING_BYTES);
    }
  }

  #wireCursor(): string {
    return `${this.#cursor}${CURSOR_MARK}${this.following.view}`;
  }

  #wake(): void {
    this.#look();
    this.following.out.nudge();
  }

  #lookWhenNarrower(): void {
    this.#cancelNarrowing();
    const { clock } = this.context;
    const { narrowsAt } = this.following.outlook.sight;
    if (narrowsAt === Infinity) return;
    this.#cancelNarrowing = clock.after(narrowsAt - clock.now(), () => this.#wake());
  }
}

/** Between the supervisor's cursor and the view that it was given for. */
const CURSOR_MARK = '~';

/** What the client of a cursor could see: another filter or other grants are another view. */
function viewOf(filter: TerminalFilter | undefined, { token }: Sight): string {
  const canonical = [canonicalFilter(filter), token.grants];
  return createHash('sha256').update(JSON.stringify(canonical)).digest('base64url').slice(0, 16);
}

/** Undefined when nothing can be gone on from. */
function supervisorCursor(cursor: string, view: string): string | undefined {
  const at = cursor.lastIndexOf(CURSOR_MARK);
  return at >= 0 && cursor.slice(at + 1) === view ? cursor.slice(0, at) : undefined;
}
