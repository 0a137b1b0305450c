/** Remembers what retried requests did, so that each has one effect. */
import { GranttyError } from '../core/errors.js';
import type { RequestMark } from '../core/terminal.js';

/** Milliseconds for which a request id is remembered. */
export const REQUEST_MEMORY_MS = 10 * 60 * 1000;

/** Requests remembered at once; above it the oldest is forgotten early. About 200 bytes each. */
const MAX_REMEMBERED = 65_536;

interface Remembered {
  readonly bodyHash: string;
  readonly at: number;
  readonly result: Promise<unknown>;
}

export function requestReused(): GranttyError {
  return new GranttyError(
    'REQUEST_ID_REUSED',
    'this request_id was used for a different request; choose a new one',
  );
}

export class RequestMemory {
  readonly #entries = new Map<string, Remembered>();

  constructor(private readonly now: () => number) {}

  /**
   * Runs `effect` once per mark: a repetition gets the first one's result, in flight or done. A
   * failed effect is forgotten, so that a retry tries again.
   */
  async once<T>(mark: RequestMark | undefined, effect: () => Promise<T>): Promise<T> {
    if (!mark) return effect();
    this.#forgetOld();
    const known = this.#entries.get(mark.key);
    if (known) {
      if (known.bodyHash !== mark.bodyHash) throw requestReused();
      return known.result as Promise<T>;
    }
    const result = effect();
    this.#entries.set(mark.key, { bodyHash: mark.bodyHash, at: this.now(), result });
    result.catch(() => this.#entries.delete(mark.key));
    return result;
  }

  #forgetOld(): void {
    const now = this.now();
    for (const [key, entry] of this.#entries) {
      if (now - entry.at < REQUEST_MEMORY_MS && this.#entries.size < MAX_REMEMBERED) break;
      this.#entries.delete(key);
    }
  }
}
