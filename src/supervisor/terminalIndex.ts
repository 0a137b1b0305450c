/** The terminals of a host by owner and id, in the order of lists. */
import type { Name } from '../core/names.js';
import type { ListPart } from './api.js';

type Place = Readonly<Record<'owner' | 'id', Name>>;

export class TerminalIndex<T extends { readonly record: Place }> {
  readonly #byKey = new Map<string, T>();
  /** By owner, then id, bytewise: names are ASCII, of which UTF-16 order is byte order. */
  readonly #ordered: T[] = [];

  get(place: Place): T | undefined {
    return this.#byKey.get(keyOf(place));
  }

  values(): IterableIterator<T> {
    return this.#byKey.values();
  }

  /** Takes the place of one of the same owner and id. */
  set(terminal: T): void {
    const { record } = terminal;
    const replaces = this.#byKey.has(keyOf(record)) ? 1 : 0;
    this.#byKey.set(keyOf(record), terminal);
    this.#ordered.splice(this.#positionOf(record), replaces, terminal);
  }

  delete(place: Place): void {
    if (this.#byKey.delete(keyOf(place))) this.#ordered.splice(this.#positionOf(place), 1);
  }

  /** All, or those of one owner, or a part of them. */
  list(owner?: Name, part?: ListPart): readonly T[] {
    const after = part?.after;
    const found: T[] = [];
    let at = after ? this.#positionOf(after) : 0;
    if (owner !== undefined)
      at = Math.max(
        at,
        this.#find(({ record }) => record.owner < owner),
      );
    for (; at < this.#ordered.length && found.length < (part?.limit ?? Infinity); at += 1) {
      const terminal = this.#ordered[at];
      if (terminal === undefined) break;
      if (owner !== undefined && terminal.record.owner !== owner) break;
      if (after === undefined || compare(terminal.record, after) > 0) found.push(terminal);
    }
    return found;
  }

  /** Where it stands, or would stand. */
  #positionOf(place: Place): number {
    return this.#find(({ record }) => compare(record, place) < 0);
  }

  /** The first for which `isBefore` does not hold. */
  #find(isBefore: (terminal: T) => boolean): number {
    let low = 0;
    for (let high = this.#ordered.length; low < high; ) {
      const middle = (low + high) >> 1;
      const terminal = this.#ordered[middle];
      if (terminal !== undefined && isBefore(terminal)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Names hold no slash. */
function keyOf({ owner, id }: Place): string {
  return `${owner}/${id}`;
}

function compare(a: Place, b: Place): number {
  if (a.owner !== b.owner) return a.owner < b.owner ? -1 : 1;
  if (a.id !== b.id) return a.id < b.id ? -1 : 1;
  return 0;
}
