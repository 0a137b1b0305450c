/** An `EventSource` of a supervisor's live output and a reader of its logs. */
import { GranttyError } from '../core/errors.js';
import type { TerminalEvent } from '../core/event.js';
import type { LiveItem, LiveOutput, Supervisor, TerminalKey } from '../supervisor/api.js';
import type { EventSource, LogRange } from './eventSource.js';

/** Reads one terminal's log; safe beside its writer. */
export interface History extends AsyncDisposable {
  read(
    fromSeq: number,
    throughSeq: number,
    options: { readonly signal: AbortSignal },
  ): AsyncIterable<readonly TerminalEvent[]>;
  /** As `EventSource.tailSeq`. */
  seqForTail(bytes: number, throughSeq: number): Promise<number>;
}

export type OpenHistory = (key: TerminalKey) => Promise<History>;

export class LogEvents implements EventSource {
  constructor(
    private readonly supervisor: Supervisor,
    private readonly openHistory: OpenHistory,
  ) {}

  async range(key: TerminalKey): Promise<LogRange> {
    const terminal = await this.supervisor.get(key);
    if (!terminal) throw new GranttyError('TERMINAL_NOT_FOUND', 'there is no such terminal');
    const { firstSeq, nextSeq, record } = terminal;
    return { firstSeq, nextSeq, size: record.size };
  }

  async tailSeq(key: TerminalKey, bytes: number, throughSeq: number): Promise<number> {
    await using history = await this.openHistory(key);
    return history.seqForTail(bytes, throughSeq);
  }

  async *follow(key: TerminalKey, fromSeq: number, signal: AbortSignal): AsyncIterable<LiveItem> {
    let next = fromSeq;
    while (!signal.aborted) {
      const closing = new AbortController();
      const close = () => closing.abort();
      signal.addEventListener('abort', close, { once: true });
      try {
        const live = await this.supervisor.openOutput(key, closing.signal);
        try {
          for await (const item of this.#join(key, next, live, signal)) {
            if (item.kind === 'events') next = (item.events.at(-1)?.seq ?? next - 1) + 1;
            yield item;
          }
          return;
        } catch (error) {
          if (!signal.aborted && !fellBehind(error)) throw error;
        }
      } finally {
        close();
        signal.removeEventListener('abort', close);
      }
    }
  }

  /** History up to where the live output begins, then that. */
  async *#join(
    key: TerminalKey,
    fromSeq: number,
    live: LiveOutput,
    signal: AbortSignal,
  ): AsyncIterable<LiveItem> {
    if (fromSeq < live.nextSeq) {
      await using history = await this.openHistory(key);
      for await (const events of history.read(fromSeq, live.nextSeq - 1, { signal })) {
        yield { kind: 'events', events };
      }
    }
    for await (const item of live.items) {
      if (item.kind === 'resized') yield item;
      else {
        const events = item.events.filter(({ seq }) => seq >= fromSeq);
        if (events.length > 0) yield { kind: 'events', events };
      }
    }
  }
}

/** The supervisor dropped a consumer that lags; the log has what it missed. */
function fellBehind(error: unknown): boolean {
  return error instanceof GranttyError && error.reason === 'SUPERVISOR_UNAVAILABLE';
}
