/** Who owns sessions: the exact object, not its names. */
import { type Name, parseName } from '../core/names.js';

/**
 * An owner of sessions. Authority compares objects: another object with the same names is another
 * owner. The names only say where the durable terminals of its sessions are filed.
 */
export interface Agent {
  readonly owner: Name;
  readonly agent: Name;
  /** False from the begin of its disposal. */
  readonly live: boolean;
  /**
   * Has the disposal call and await `cleanup`; all of them are attempted whatever fails.
   * @returns detaches it.
   */
  onDispose(cleanup: () => Promise<void>): () => void;
}

/** An `Agent` that lives until it is disposed. */
export class AgentScope implements Agent, AsyncDisposable {
  readonly #cleanups = new Set<() => Promise<void>>();
  readonly owner: Name;
  readonly agent: Name;
  #disposal: Promise<void> | undefined;

  /** @throws FIELD_INVALID for what is no name */
  constructor(owner: string, agent: string) {
    this.owner = parseName('owner', owner);
    this.agent = parseName('agent', agent);
  }

  get live(): boolean {
    return this.#disposal === undefined;
  }

  onDispose(cleanup: () => Promise<void>): () => void {
    this.#cleanups.add(cleanup);
    return () => this.#cleanups.delete(cleanup);
  }

  /** Idempotent. @throws AggregateError with every failure of a clean-up */
  dispose(): Promise<void> {
    this.#disposal ??= this.#cleanUp();
    return this.#disposal;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  async #cleanUp(): Promise<void> {
    // `live` must be false before any clean-up runs.
    await Promise.resolve();
    const outcomes = await Promise.allSettled([...this.#cleanups].map(async (run) => run()));
    this.#cleanups.clear();
    const failures = outcomes.flatMap((outcome) =>
      outcome.status === 'rejected' ? [outcome.reason] : [],
    );
    if (failures.length > 0) {
      throw new AggregateError(failures, `disposing agent ${this.agent}: clean-up failed`);
    }
  }
}
