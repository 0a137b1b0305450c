/** Records on their way to the disk: written in order, made durable together, kept on a full disk. */
import { GranttyError } from '../core/errors.js';
import { hostFailure } from '../core/hostFailure.js';
import type { Draft } from './chain.js';
import type { Ledger } from './ledger.js';

/**
 * Records that wait for the disk. Callers wait too, so more than this means a disk that does not
 * keep up: further ones are refused. Those that may use the reserve are not: each has a caller.
 */
const MAX_QUEUED = 8_192;

/** Records written at once: a few hundred KiB, so that nobody waits long behind others. */
const MAX_BATCH = 256;

/** Milliseconds that a record for which nobody waits is held, so that it shares a write with others. */
const PATIENCE_MS = 2;

/** Milliseconds between attempts to go on with a disk that was full. */
const RETRY_MS = 1_000;

/** How safe a record is when its promise resolves. */
export type Durability =
  /** With the kernel: it survives the end of this process. */
  | 'written'
  /** On the disk: it survives a power cut. */
  | 'synced';

export interface Item {
  /** Called when its turn has come, and again when it has to be written elsewhere. */
  compose(): readonly Draft[];
  readonly durability: Durability;
  /** May use the reserve where there is no room. */
  readonly reserved: boolean;
  /** Nobody waits for it. */
  readonly patient?: true;
}

/** What the queue asks and tells whoever keeps the trail. */
export interface Keeper {
  /** Records that end a file. */
  closing(): readonly Draft[];
  /** Records that begin one. */
  opening(): readonly Draft[];
  /** The first record of `closing`, as it was written. */
  closed(line: string): void;
  /** Records that were composed did not get to the disk: later ones may not rely on them. */
  lost(): void;
  /** The disk refuses; told once, until it takes records again. */
  failing(error: unknown): void;
  recovered(): void;
}

/** Who hears what became of a record; neither may throw. */
export interface Settle {
  /** As durable as was asked: the lines of the record, or none when they are in the reserve. */
  resolve(lines: readonly string[]): void;
  /** AUDIT_UNAVAILABLE, and the record may be missing. */
  reject(error: unknown): void;
}

interface Entry {
  readonly item: Item;
  readonly settle: Settle;
}

export class CommitQueue {
  readonly #queue: Entry[] = [];
  /** Written, and waiting to be durable. */
  #unsynced: (readonly [Entry, readonly string[]])[] = [];
  #writing: Promise<void> | undefined;
  /** Somebody waits for what is in the queue, or it has waited long enough. */
  #due = false;
  #patience: NodeJS.Timeout | undefined;
  #syncing: Promise<void> | undefined;
  /** Not before then is a disk that was full tried again. */
  #retryAt = 0;
  #failing = false;
  #closed = false;

  constructor(
    private readonly ledger: Ledger,
    private readonly keeper: Keeper,
    private readonly now: () => number,
  ) {}

  /**
   * Resolves with the lines of the record, as durable as it asks; none when they are in the reserve.
   * @throws AUDIT_UNAVAILABLE, and the record may be missing
   */
  append(item: Item): Promise<readonly string[]> {
    return new Promise((resolve, reject) => this.put(item, { resolve, reject }));
  }

  /** As `append`, without a promise: most records are one of many for which nobody waits by themselves. */
  put(item: Item, settle: Settle): void {
    if (this.#closed) {
      settle.reject(unavailable('the audit trail is closed'));
    } else if (this.#queue.length >= MAX_QUEUED && !item.reserved) {
      settle.reject(unavailable('too many audit records wait for the disk'));
    } else {
      this.#queue.push({ item, settle });
      if (item.patient) this.#writeSoon();
      else this.#writeNow();
    }
  }

  /** Takes no more; resolves when all that was taken has been settled. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#writeNow();
    await this.#writing;
    await this.#syncing;
  }

  #writeNow(): void {
    clearTimeout(this.#patience);
    this.#patience = undefined;
    this.#due = true;
    this.#writing ??= this.#write();
  }

  #writeSoon(): void {
    if (this.#writing === undefined) {
      this.#patience ??= setTimeout(() => this.#writeNow(), PATIENCE_MS);
    }
  }

  async #write(): Promise<void> {
    // Callers of one turn of the event loop share a write.
    await new Promise(setImmediate);
    while (this.#due && this.#queue.length > 0) {
      const batch = this.#queue.splice(0, MAX_BATCH);
      this.#due = this.#queue.length > 0;
      try {
        await this.#makeReady();
        this.#settle(batch, await this.#appendAll(batch));
        this.#recovered();
      } catch (error) {
        this.#failed(error);
        await this.#fallBack(batch, error);
      }
    }
    this.#writing = undefined;
    if (this.#queue.length > 0) this.#writeSoon();
  }

  /** Room first for what waits in the reserve, then the file of the day. */
  async #makeReady(): Promise<void> {
    const now = this.now();
    const { ledger, keeper } = this;
    const mustDrain = ledger.inReserve;
    if (!mustDrain && !ledger.isDue(now)) return;
    if (now < this.#retryAt) {
      if (mustDrain || ledger.file === undefined) throw new Error('there was no room just now');
      return;
    }
    this.#retryAt = now + RETRY_MS;
    await ledger.drain();
    if (ledger.isDue(now)) {
      try {
        const [line] = await ledger.rollOver(now, keeper.closing(), keeper.opening());
        if (line !== undefined) keeper.closed(line);
      } catch (error) {
        // The file of yesterday does for now.
        if (ledger.file === undefined) throw error;
        this.keeper.lost();
        this.#failed(error);
      }
    }
    this.#retryAt = 0;
  }

  async #appendAll(batch: readonly Entry[]): Promise<readonly (readonly string[])[]> {
    const drafts: Draft[] = [];
    const ends: number[] = [];
    for (const { item } of batch) {
      for (const draft of item.compose()) drafts.push(draft);
      ends.push(drafts.length);
    }
    const lines = await this.#orLost(this.ledger.append(drafts));
    return ends.map((end, index) => lines.slice(ends[index - 1] ?? 0, end));
  }

  #settle(batch: readonly Entry[], lines: readonly (readonly string[])[]): void {
    batch.forEach((entry, index) => {
      const own = lines[index] ?? [];
      if (entry.item.durability === 'synced') this.#unsynced.push([entry, own]);
      else entry.settle.resolve(own);
    });
    if (this.#unsynced.length > 0) this.#syncing ??= this.#sync();
  }

  /** One sync for all that was written before it; what is written meanwhile shares the next one. */
  async #sync(): Promise<void> {
    while (this.#unsynced.length > 0) {
      const waiting = this.#unsynced;
      this.#unsynced = [];
      try {
        await this.ledger.sync();
        for (const [{ settle }, lines] of waiting) settle.resolve(lines);
      } catch (error) {
        this.#failed(error);
        for (const [{ settle }] of waiting) settle.reject(unavailable('the disk failed', error));
      }
    }
    this.#syncing = undefined;
  }

  async #orLost<T>(appended: Promise<T>): Promise<T> {
    try {
      return await appended;
    } catch (error) {
      this.keeper.lost();
      throw error;
    }
  }

  #failed(error: unknown): void {
    if (!this.#failing) this.keeper.failing(error);
    this.#failing = true;
  }

  #recovered(): void {
    if (this.#failing) this.keeper.recovered();
    this.#failing = false;
  }

  async #fallBack(batch: readonly Entry[], cause: unknown): Promise<void> {
    for (const { item, settle } of batch) {
      if (!item.reserved)
        settle.reject(unavailable(`the audit trail cannot be written${why(cause)}`, cause));
    }
    const reserved = batch.filter(({ item }) => item.reserved);
    if (reserved.length === 0) return;
    try {
      const drafts = reserved.flatMap(({ item }) => item.compose());
      await this.#orLost(this.ledger.appendToReserve(drafts));
      for (const { settle } of reserved) settle.resolve([]);
    } catch (error) {
      for (const { settle } of reserved) {
        const what = `neither the audit trail nor its reserve can be written${why(error)}`;
        settle.reject(unavailable(what, error));
      }
    }
  }
}

function why(error: unknown): string {
  const lack = hostFailure(error);
  return lack === undefined ? '' : `, ${lack}`;
}

function unavailable(what: string, cause?: unknown): GranttyError {
  return new GranttyError('AUDIT_UNAVAILABLE', `${what}; nothing was done, try again later`, {
    retryAfterMs: RETRY_MS,
    cause,
  });
}
