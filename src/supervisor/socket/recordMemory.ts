/**
 * Spares a record that has not changed its way across: a `get` names the revision that its client has,
 * and gets the record only when the supervisor has another. Nothing is answered from memory alone;
 * what a client is told is as it was after it asked.
 */
import { LRUCache } from 'lru-cache';
import type { TerminalRecord } from '../../core/terminal.js';
import type { TerminalKey } from '../api.js';

/** Records that a client keeps, about 1 KiB each; one that was used longest ago is sent again. */
const MAX_RECORDS = 4_096;

export interface KnownRecord {
  /** Means something on the connection that it came by, and nowhere else. */
  readonly revision: number;
  readonly record: TerminalRecord;
}

/** The client's side, for the life of one connection. */
export class RecordMemory {
  /** By owner and id. */
  readonly #records = new LRUCache<string, KnownRecord>({ max: MAX_RECORDS });

  recall(key: TerminalKey): KnownRecord | undefined {
    return this.#records.get(placeOf(key));
  }

  keep(known: KnownRecord): void {
    this.#records.set(placeOf(known.record), known);
  }
}

/** The supervisor's side, for the life of one connection. A record never changes: another takes its place. */
export class RecordRevisions {
  readonly #revisions = new WeakMap<TerminalRecord, number>();
  #last = 0;

  of(record: TerminalRecord): number {
    const known = this.#revisions.get(record);
    if (known !== undefined) return known;
    this.#last += 1;
    this.#revisions.set(record, this.#last);
    return this.#last;
  }
}

/** Names hold no slash. */
function placeOf({ owner, id }: Pick<TerminalKey, 'owner' | 'id'>): string {
  return `${owner}/${id}`;
}
