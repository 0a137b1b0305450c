/** Who may have one more living terminal: a count for each owner and the host, against their limits. */
import { readFileSync } from 'node:fs';
import { counted } from '../core/counted.js';
import { GranttyError } from '../core/errors.js';
import { MAX_LIVE_TERMINALS_PER_HOST } from '../core/limits.js';
import type { Name } from '../core/names.js';

/** PTYs left to the rest of the host. */
const SPARE_PTYS = 64;

/** The room of one living terminal; free again when it is disposed, once or more often. */
export type Place = Disposable;

export class Admission {
  #host = 0;
  readonly #byOwner = new Map<Name, number>();

  constructor(
    readonly maxPerOwner: number,
    readonly maxPerHost = maxLiveTerminals(),
  ) {}

  /** @throws QUOTA_TERMINALS */
  enter(owner: Name): Place {
    const own = this.#byOwner.get(owner) ?? 0;
    if (own >= this.maxPerOwner) {
      throw quota(
        `owner ${owner} has ${counted(own, 'live terminal')}, the most allowed; end one of them`,
      );
    }
    if (this.#host >= this.maxPerHost) {
      throw quota(`the host has ${this.#host} live terminals, the most allowed`);
    }
    this.#add(owner, 1);
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (isHeld) this.#add(owner, -1);
        isHeld = false;
      },
    };
  }

  #add(owner: Name, change: 1 | -1): void {
    this.#host += change;
    const own = (this.#byOwner.get(owner) ?? 0) + change;
    if (own > 0) this.#byOwner.set(owner, own);
    else this.#byOwner.delete(owner);
  }
}

function quota(what: string): GranttyError {
  return new GranttyError('QUOTA_TERMINALS', `${what}; stop one first`);
}

/** The kernel's room for PTYs, less what it reserves and what others may need (pts(4)). */
function maxLiveTerminals(): number {
  const read = (name: string) => Number(readFileSync(`/proc/sys/kernel/pty/${name}`, 'latin1'));
  return Math.min(MAX_LIVE_TERMINALS_PER_HOST, read('max') - read('reserve') - SPARE_PTYS);
}
