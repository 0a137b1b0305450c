/** Bytes of log that each owner has on disk, and the most that it may have. */
import { GranttyError } from '../core/errors.js';
import type { Name } from '../core/names.js';

export class LogQuota {
  /** Bytes by owner, over all its terminals. */
  readonly #used = new Map<Name, number>();

  constructor(readonly maxBytesPerOwner: number) {}

  /** A log of the owner has grown, or shrunk, by so many bytes. */
  add(owner: Name, bytes: number): void {
    const used = (this.#used.get(owner) ?? 0) + bytes;
    if (used > 0) this.#used.set(owner, used);
    else this.#used.delete(owner);
  }

  /** @throws QUOTA_LOG_BYTES when the owner has used up what it may have */
  check(owner: Name): void {
    if ((this.#used.get(owner) ?? 0) < this.maxBytesPerOwner) return;
    throw new GranttyError(
      'QUOTA_LOG_BYTES',
      `the logs of owner ${owner} have reached ${this.maxBytesPerOwner} bytes; delete exited terminals`,
    );
  }
}
