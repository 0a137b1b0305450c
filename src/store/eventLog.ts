/** The one writer of a terminal's log: repairs it when it opens it, then appends. */
import { write, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { ExitEvent, TerminalEvent } from '../core/event.js';
import { withAppendBuffer } from './appendBuffers.js';
import { EventLine } from './eventCodec.js';
import { openOrCreate } from './files.js';
import { LogIndex } from './logIndex.js';
import {
  beginWriting,
  type OpenedLog,
  openForWriting,
  type SealedPart,
  type SetAside,
} from './logOpening.js';
import { removePart, sealPart, unsealPart } from './logParts.js';
import type { LogState } from './logRepair.js';
import { EVENTS_FILE, INDEX_FILE } from './paths.js';
import type { StoreLog } from './storeLog.js';
import type { WrittenFile } from './writtenFile.js';

export interface EventLogOptions {
  readonly log?: StoreLog;
  /** Bytes of events.jsonl above which it is sealed and a new one is begun; absent: never. */
  readonly maxBytes?: number;
  /**
   * Bytes of the whole log above which sealed parts are removed, the oldest first; absent: never.
   * The newest sealed part stays in any case.
   */
  readonly retainBytes?: number;
}

/**
 * Whoever opens it makes sure (by the supervisor's lock) that nobody else writes. What `append`
 * has resolved for is with the kernel: it outlives this process, and after `sync` a power cut.
 */
export class EventLog implements AsyncDisposable {
  readonly #dir: string;
  readonly #options: EventLogOptions;
  #handle: WrittenFile;
  #index: LogIndex;
  /** Oldest first. */
  readonly #sealed: SealedPart[];
  /** Bytes of events.jsonl that are whole, sound lines: where the next one goes. */
  #end: number;
  /** Seq of the first event of events.jsonl. */
  #firstSeq: number | undefined;
  #state: LogState;
  #appending: Promise<void> | undefined;
  /** Syncs and seals run one after the other: this is the end of the last one. */
  #turn: Promise<void> = Promise.resolve();
  #syncedEnd: number | undefined;
  /** Bytes of a failed append may stand behind `#end`. */
  #soiled = false;
  #closed = false;

  /** What was torn when the log was opened, and now lies beside it. */
  readonly repaired: SetAside | undefined;

  private constructor(dir: string, options: EventLogOptions, found: OpenedLog) {
    this.#dir = dir;
    this.#options = options;
    this.#handle = found.handle;
    this.#index = found.index;
    this.#sealed = found.sealed;
    this.#end = found.end;
    this.#firstSeq = found.firstSeq;
    this.#state = found.state;
    this.repaired = found.repaired;
  }

  /**
   * Makes the log where there is none; a durable write of the record then makes its name durable. A
   * tail that is not sound is moved aside, never deleted.
   */
  static async open(dir: string, options: EventLogOptions = {}): Promise<EventLog> {
    const found = await openForWriting(dir);
    const { repaired, state } = found;
    if (repaired) options.log?.warn({ ...repaired, nextSeq: state.nextSeq }, 'torn log repaired');
    return new EventLog(dir, options, found);
  }

  /** The same in a directory that was just made, in which there is nothing to look for. */
  static async begin(dir: string, options: EventLogOptions = {}): Promise<EventLog> {
    return new EventLog(dir, options, await beginWriting(dir));
  }

  /** Seq of the oldest event that is kept; `nextSeq` when there is none. */
  get firstSeq(): number {
    return this.#sealed[0]?.firstSeq ?? this.#firstSeq ?? this.#state.nextSeq;
  }

  get nextSeq(): number {
    return this.#state.nextSeq;
  }

  /** Time of the last event; 0 when there is none. */
  get lastTimeMicros(): number {
    return this.#state.lastTimeMicros;
  }

  /** The exit that the log ends with; undefined when it ends with anything else. */
  get lastExit(): ExitEvent | undefined {
    return this.#state.lastExit;
  }

  /** Bytes of all parts. */
  get size(): number {
    return this.#sealed.reduce((sum, part) => sum + part.bytes, this.#end);
  }

  /**
   * Writes events whose seqs go on from `nextSeq`; one call at a time. When it rejects (no space
   * left, say) the log is as it was before, and the same events may be given again.
   */
  async append(events: readonly TerminalEvent[]): Promise<void> {
    if (this.#closed) throw new Error('the log is closed');
    if (this.#appending) throw new Error('an append to this log is in flight');
    requireContinuous(events, this.#state.nextSeq);
    this.#appending = this.#appendNow(events);
    try {
      await this.#appending;
    } finally {
      this.#appending = undefined;
    }
  }

  /** What was appended before the call outlives a power cut when it resolves. */
  sync(): Promise<void> {
    return this.#inTurn(() => this.#syncNow());
  }

  /**
   * Removes sealed parts to which nothing was written since `before` (milliseconds since the Unix
   * epoch), and resolves with their bytes. The newest stays where events.jsonl is empty: a log keeps
   * its end, and so its last exit.
   */
  async removeOlder(before: number): Promise<number> {
    let removed = 0;
    await this.#inTurn(() =>
      this.#removeWhile(({ writtenAt, bytes }, newer) => {
        const hasMore = newer !== undefined || this.#firstSeq !== undefined;
        if (writtenAt >= before || !hasMore) return false;
        removed += bytes;
        return true;
      }),
    );
    return removed;
  }

  /** Syncs and closes, once an append in flight is over. Later calls do nothing. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#appending?.catch(() => undefined);
    try {
      await this.sync();
    } finally {
      await this.#index.close().finally(() => this.#handle.close());
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #appendNow(events: readonly TerminalEvent[]): Promise<void> {
    const last = events.at(-1);
    if (!last) return;
    const lines = events.map((event) => new EventLine(event));
    const length = lines.reduce((sum, line) => sum + line.length, 0);
    const { maxBytes = Number.POSITIVE_INFINITY } = this.#options;
    if (this.#firstSeq !== undefined && this.#end + length > maxBytes) {
      const firstSeq = this.#firstSeq;
      await this.#inTurn(() => this.#seal(firstSeq));
    }
    await this.#write(lines);
    this.#index.note(this.#state.nextSeq, this.#end);
    this.#end += length;
    this.#firstSeq ??= this.#state.nextSeq;
    this.#state = {
      nextSeq: last.seq + 1,
      lastTimeMicros: last.timeMicros,
      lastExit: last.type === 'process.exit' ? last : undefined,
    };
  }

  /** Writes all lines behind the last good one, or leaves no trace of them. */
  async #write(lines: readonly EventLine[]): Promise<void> {
    await this.#clean();
    this.#soiled = true;
    try {
      await withAppendBuffer((buffer) => this.#writeBy(buffer, lines));
      this.#soiled = false;
    } catch (error) {
      await this.#clean().catch((cause: unknown) => {
        this.#options.log?.warn({ err: cause }, 'half an append is in a log until the next one');
      });
      throw error;
    }
  }

  /** As many lines at a time as `buffer` holds. */
  async #writeBy(buffer: Buffer, lines: readonly EventLine[]): Promise<void> {
    let position = this.#end;
    let filled = 0;
    for (const line of lines) {
      if (filled + line.length > buffer.length) {
        await writeAll(this.#handle.fd, buffer.subarray(0, filled), position);
        position += filled;
        filled = 0;
      }
      filled = line.writeTo(buffer, filled);
    }
    await writeAll(this.#handle.fd, buffer.subarray(0, filled), position);
  }

  async #clean(): Promise<void> {
    if (!this.#soiled) return;
    await this.#handle.truncate(this.#end);
    this.#soiled = false;
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => undefined);
    return done;
  }

  async #syncNow(): Promise<void> {
    const durable = { seq: this.#state.nextSeq, offset: this.#end };
    if (durable.offset !== this.#syncedEnd) {
      await this.#handle.datasync();
      this.#syncedEnd = durable.offset;
    }
    await this.#index.flush(durable).catch((error: unknown) => {
      this.#options.log?.warn({ err: error }, 'the index of a log could not be written');
    });
  }

  /** Makes a sealed part of events.jsonl, durably, and begins a new one. */
  async #seal(firstSeq: number): Promise<void> {
    await this.#syncNow();
    await sealPart(this.#dir, firstSeq);
    let next: WrittenFile;
    try {
      next = await openOrCreate(join(this.#dir, EVENTS_FILE));
    } catch (error) {
      await unsealPart(this.#dir, firstSeq);
      throw error;
    }
    await this.#index.close();
    await this.#handle.close();
    const writtenAt = this.#state.lastTimeMicros / 1000;
    this.#sealed.push({ firstSeq, bytes: this.#end, writtenAt });
    this.#handle = next;
    this.#index = await LogIndex.open(join(this.#dir, INDEX_FILE), undefined);
    this.#end = 0;
    this.#syncedEnd = undefined;
    this.#firstSeq = undefined;
    const { retainBytes = Number.POSITIVE_INFINITY } = this.#options;
    await this.#removeWhile((_, newer) => this.size > retainBytes && newer !== undefined);
  }

  /** Removes sealed parts from the oldest on, as long as `isDue` says so of it and the next newer one. */
  async #removeWhile(
    isDue: (oldest: SealedPart, newer: SealedPart | undefined) => boolean,
  ): Promise<void> {
    for (;;) {
      const [oldest, newer] = this.#sealed;
      if (!oldest || !isDue(oldest, newer)) return;
      await removePart(this.#dir, oldest.firstSeq);
      this.#sealed.shift();
    }
  }
}

/**
 * Bytes up to which a write is done at once: what it takes to have the page cache copy them is less
 * than the way to a thread and back, which an echo would wait for. A flood's writes are left to the
 * threads, where a disk that is behind holds up nobody else.
 */
const AT_ONCE_BYTES = 16 * 1024;

async function writeAll(fd: number, bytes: Buffer, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const atOnce = bytes.length <= AT_ONCE_BYTES;
    const rest = bytes.subarray(done);
    const written = atOnce
      ? writeSync(fd, rest, 0, rest.length, position + done)
      : await writeInThread(fd, rest, position + done);
    if (written === 0) throw new Error('the log took no byte');
    done += written;
  }
}

/** By callback: an eighth quicker than a FileHandle. */
function writeInThread(fd: number, bytes: Buffer, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    write(fd, bytes, 0, bytes.length, position, (error, written) => {
      if (error) reject(error);
      else resolve(written);
    });
  });
}

function requireContinuous(events: readonly TerminalEvent[], nextSeq: number): void {
  for (const [i, event] of events.entries()) {
    if (event.seq !== nextSeq + i) {
      throw new Error(`event ${event.seq} given where ${nextSeq + i} is next`);
    }
  }
}
