/** An event source that a test writes to. */
import { GranttyError } from '../../src/core/errors.js';
import type { OutputEvent, TerminalEvent, TerminalSize } from '../../src/core/event.js';
import type { Name } from '../../src/core/names.js';
import type { EventSource, LogRange } from '../../src/session/eventSource.js';
import type { ScreenKey } from '../../src/session/screens.js';
import type { LiveItem, TerminalKey } from '../../src/supervisor/api.js';

export const screenKey: ScreenKey = { owner: '1000' as Name, id: 't1' as Name, uid: 'u1' };

export function output(seq: number, data: string | Uint8Array, size?: TerminalSize): OutputEvent {
  const base = { type: 'pty.output', seq, timeMicros: seq, data: Buffer.from(data) } as const;
  return size ? { ...base, size } : base;
}

export class FakeEvents implements EventSource {
  readonly #log: TerminalEvent[] = [];
  readonly #waiters = new Set<() => void>();
  size: TerminalSize = { cols: 40, rows: 5 };
  deleted = false;
  /** How often `follow` was called, from which seqs. */
  readonly follows: number[] = [];
  /** Followers at this moment. */
  following = 0;

  get nextSeq(): number {
    return this.#log.length + 1;
  }

  print(data: string | Uint8Array): void {
    this.#log.push(output(this.nextSeq, data));
    this.#wake();
  }

  exit(exitCode = 0): void {
    this.#log.push({ type: 'process.exit', seq: this.nextSeq, timeMicros: 0, exitCode });
    this.#wake();
  }

  delete(): void {
    this.deleted = true;
    this.#wake();
  }

  async range(_key: TerminalKey): Promise<LogRange> {
    if (this.deleted) throw new GranttyError('TERMINAL_NOT_FOUND', 'gone');
    return { firstSeq: 1, nextSeq: this.nextSeq, size: this.size };
  }

  async tailSeq(_key: TerminalKey, bytes: number, throughSeq: number): Promise<number> {
    let room = bytes;
    let seq = throughSeq + 1;
    while (seq > 1) {
      const event = this.#log[seq - 2];
      room -= event?.type === 'pty.output' ? event.data.length : 0;
      if (room < 0 && seq <= throughSeq) break;
      seq -= 1;
    }
    return seq;
  }

  async *follow(_key: TerminalKey, fromSeq: number, signal: AbortSignal): AsyncIterable<LiveItem> {
    this.follows.push(fromSeq);
    this.following += 1;
    const wake = () => this.#wake();
    signal.addEventListener('abort', wake, { once: true });
    try {
      let next = fromSeq;
      while (!signal.aborted) {
        const events = this.#log.slice(next - 1);
        next += events.length;
        if (events.length > 0) yield { kind: 'events', events };
        else if (this.deleted) return;
        else await new Promise<void>((resolve) => this.#waiters.add(resolve));
      }
    } finally {
      this.following -= 1;
      signal.removeEventListener('abort', wake);
    }
  }

  #wake(): void {
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const waiter of waiters) waiter();
  }
}
