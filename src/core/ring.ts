/**
 * Things in the order in which they came, of which each may leave at any time.
 *
 * For what comes and goes thousands of times a second. A Set or a Map moves to a new table every so
 * many entries, and the table that it leaves goes on naming the next one and what was in it: once one
 * of them counts as old, nothing that passes through is young garbage any more. What has left a ring
 * names nothing in it, and nothing in it names what has left.
 */

/** A thing's place in a ring; empty once it has left. */
export class Link<T> {
  item: T | undefined;
  before: Link<T> = this;
  after: Link<T> = this;

  /** Leaves the ring. Nothing happens when it has left before. */
  remove(): void {
    this.before.after = this.after;
    this.after.before = this.before;
    this.before = this;
    this.after = this;
    this.item = undefined;
  }
}

export class Ring<T> {
  /** Holds nothing: the first comes after it, the last before it. */
  readonly #end = new Link<T>();

  /** Puts it last. */
  add(item: T): Link<T> {
    const link = new Link<T>();
    const last = this.#end.before;
    link.item = item;
    link.before = last;
    link.after = this.#end;
    last.after = link;
    this.#end.before = link;
    return link;
  }

  /** From the first on. What has been taken may leave before the next is asked for. */
  *[Symbol.iterator](): Generator<T, void, undefined> {
    for (let link = this.#end.after; link !== this.#end; ) {
      const { item, after } = link;
      if (item === undefined) return;
      yield item;
      link = after;
    }
  }
}
