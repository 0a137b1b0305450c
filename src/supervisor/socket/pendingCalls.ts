/**
 * The calls that wait for their answers, by id. In slots that are used again, not in a Map: see `Ring`
 * for what tables that are outgrown all the time keep alive.
 */
import { MAX_PENDING_REQUESTS } from './protocol.js';

/** Ids are uint32; those of one slot are so far apart, so that one is not used again soon. */
const ID_STEP = MAX_PENDING_REQUESTS;
const LAST_ID = 0xffff_ffff;

export class PendingCalls<Sink> {
  readonly #sinks: (Sink | undefined)[] = [];
  /** Of each slot, the id of the call that waits or waited in it. */
  readonly #ids: number[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#sinks.length - this.#free.length;
  }

  /** The id that the call is to have; undefined when as many wait as may. */
  add(sink: Sink): number | undefined {
    const slot = this.#free.pop() ?? this.#sinks.length;
    if (slot === MAX_PENDING_REQUESTS) return undefined;
    const former = this.#ids[slot] ?? slot + 1 - ID_STEP;
    const id = former > LAST_ID - ID_STEP ? slot + 1 : former + ID_STEP;
    this.#ids[slot] = id;
    this.#sinks[slot] = sink;
    return id;
  }

  get(id: number): Sink | undefined {
    const slot = slotOf(id);
    return this.#ids[slot] === id ? this.#sinks[slot] : undefined;
  }

  /** False when none of that id waits. */
  delete(id: number): boolean {
    if (this.get(id) === undefined) return false;
    const slot = slotOf(id);
    this.#sinks[slot] = undefined;
    this.#free.push(slot);
    return true;
  }

  /** Takes all of them out. */
  clear(): readonly Sink[] {
    const waiting = this.#sinks.filter((sink) => sink !== undefined);
    this.#sinks.length = 0;
    this.#ids.length = 0;
    this.#free.length = 0;
    return waiting;
  }
}

function slotOf(id: number): number {
  return (id - 1) % ID_STEP;
}
