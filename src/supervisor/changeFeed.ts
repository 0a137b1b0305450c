/** The ordered feed of terminals' lifecycle changes that WatchTerminals resumes from. */
import { randomUUID } from 'node:crypto';
import { AsyncQueue } from '../core/asyncQueue.js';
import { GranttyError } from '../core/errors.js';
import type { TerminalTuple } from '../core/names.js';
import type { TerminalChange, TerminalSnapshot } from './api.js';

/** Changes kept for those who resume; who is further behind gets a snapshot. */
const MAX_KEPT = 4096;

/** Changes that wait for one follower; above it the follower is ended and comes back by its cursor. */
const MAX_QUEUED = 4096;

type Change = Exclude<TerminalChange, { kind: 'snapshot' }>;

export class ChangeFeed {
  /** Cursors of another feed mean nothing here. */
  readonly #id = randomUUID();
  readonly #followers = new Set<AsyncQueue<TerminalChange>>();
  /** Changes number #revision - #kept.length + 1 to #revision. */
  readonly #kept: Change[] = [];
  #revision = 0;

  changed(terminal: TerminalSnapshot): void {
    this.#publish({ kind: 'changed', terminal, cursor: this.#nextCursor() });
  }

  removed(tuple: TerminalTuple, uid: string): void {
    this.#publish({ kind: 'removed', tuple, uid, cursor: this.#nextCursor() });
  }

  /** Changes after `cursor`, a snapshot first where they are not known any more. */
  async *follow(
    cursor: string | undefined,
    snapshot: () => Promise<readonly TerminalSnapshot[]>,
    signal: AbortSignal,
  ): AsyncGenerator<TerminalChange, void, undefined> {
    const queue = new AsyncQueue<TerminalChange>(MAX_QUEUED);
    const end = () => queue.end();
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    this.#followers.add(queue);
    try {
      const missed = this.#after(cursor);
      if (missed) yield* missed;
      else {
        const at = this.#cursor();
        yield { kind: 'snapshot', terminals: await snapshot(), cursor: at };
      }
      yield* queue;
    } finally {
      this.#followers.delete(queue);
      signal.removeEventListener('abort', end);
    }
  }

  end(): void {
    for (const queue of this.#followers) queue.end();
  }

  #publish(change: Change): void {
    this.#revision += 1;
    this.#kept.push(change);
    if (this.#kept.length > MAX_KEPT) this.#kept.shift();
    for (const queue of this.#followers) {
      if (queue.push(change)) continue;
      queue.fail(
        new GranttyError('SUPERVISOR_UNAVAILABLE', 'too far behind the changes; resume by cursor'),
      );
    }
  }

  #after(cursor: string | undefined): Change[] | undefined {
    const [id, text] = cursor?.split('/') ?? [];
    const revision = Number(text);
    if (id !== this.#id || !Number.isSafeInteger(revision)) return undefined;
    const missing = this.#revision - revision;
    if (missing < 0 || missing > this.#kept.length) return undefined;
    return missing === 0 ? [] : this.#kept.slice(-missing);
  }

  #cursor(): string {
    return `${this.#id}/${this.#revision}`;
  }

  #nextCursor(): string {
    return `${this.#id}/${this.#revision + 1}`;
  }
}
