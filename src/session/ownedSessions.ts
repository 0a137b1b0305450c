/** What one owner has: its published sessions, its spawns under way, and clean-ups that failed. */
import type { Agent } from './agent.js';
import type {
  TerminalBackendSession,
  TerminalSendOperation,
  TerminalSessionId,
  TerminalSessionSnapshot,
} from './sessionTypes.js';

/** Clean-up failures kept for an owner's disposal to report; later ones only count. */
const MAX_FAILURES = 64;

/** A spawn that has not been published; its name is taken. */
export interface PendingSpawn {
  readonly name: string | undefined;
  readonly abort: AbortController;
  /** Never rejects; resolves when nothing of the set-up goes on. */
  readonly settled: Promise<void>;
}

export class PublishedSession {
  /** The send that holds the session until it settles. */
  send: TerminalSendOperation | undefined;
  #closing: Promise<void> | undefined;

  constructor(
    readonly id: TerminalSessionId,
    readonly owner: Agent,
    readonly type: string,
    readonly name: string | undefined,
    readonly session: TerminalBackendSession,
  ) {}

  get closing(): boolean {
    return this.#closing !== undefined;
  }

  /** Joins a close in flight; after one that failed it tries again. */
  close(reason: string): Promise<void> {
    this.#closing ??= this.#close(reason);
    return this.#closing;
  }

  async #close(reason: string): Promise<void> {
    try {
      await this.session.close(reason);
    } catch (error) {
      this.#closing = undefined;
      throw error;
    }
  }

  snapshot(): TerminalSessionSnapshot {
    const { pid } = this.session;
    return {
      sessionId: this.id,
      ...(this.name !== undefined && { name: this.name }),
      type: this.type,
      ...(pid !== undefined && { pid }),
      status: { ...this.session.status() },
    };
  }
}

export interface EndedSessions {
  readonly closed: readonly PublishedSession[];
  readonly failures: readonly unknown[];
}

export class OwnedSessions {
  readonly pending = new Set<PendingSpawn>();
  readonly published = new Set<PublishedSession>();
  readonly #failures: unknown[] = [];
  #uncounted = 0;

  get active(): boolean {
    return this.pending.size > 0 || this.published.size > 0;
  }

  /** Nothing that a disposal would have to close or to report. */
  get empty(): boolean {
    return !this.active && this.#failures.length === 0;
  }

  hasName(name: string): boolean {
    return [...this.pending, ...this.published].some((taken) => taken.name === name);
  }

  keepFailure(error: unknown): void {
    if (this.#failures.length < MAX_FAILURES) this.#failures.push(error);
    else this.#uncounted += 1;
  }

  /** Aborts what is not published, attempts every close, and answers with what failed until then. */
  async end(abortReason: unknown, closeReason: string): Promise<EndedSessions> {
    for (const { abort } of this.pending) abort.abort(abortReason);
    await Promise.all([...this.pending].map(({ settled }) => settled));
    const sessions = [...this.published];
    const outcomes = await Promise.allSettled(sessions.map((each) => each.close(closeReason)));
    const closed = sessions.filter((_, index) => outcomes[index]?.status === 'fulfilled');
    for (const session of closed) this.published.delete(session);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') this.keepFailure(outcome.reason);
    }
    const failures = this.#failures.splice(0);
    if (this.#uncounted > 0) failures.push(new Error(`${this.#uncounted} more clean-ups failed`));
    this.#uncounted = 0;
    return { closed, failures };
  }
}
