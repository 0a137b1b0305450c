/** Reads a terminal's log by seq, beside its writer. */
import type { TerminalEvent } from '../../core/event.js';
import { decodeLine, MAX_LINE_BYTES } from '../eventCodec.js';
import { requireDirectory } from '../files.js';
import { LINE_BUFFER_BYTES, type TakeLine, takeLines, takeLinesBack } from '../lines.js';
import type { LogPlace } from '../logIndex.js';
import { Incarnation } from './incarnation.js';
import { LineBlock } from './lineBlock.js';
import { withLineBuffer } from './lineBuffers.js';
import { LogPart, requireSeq, whenGone } from './logPart.js';
import { type Passage, readPassage } from './passage.js';

export interface ReadOptions {
  /** Bytes of the file that one batch comes from, about; by default and at most 384 KiB. */
  readonly batchBytes?: number;
  /** Ends the reading: the iteration throws its reason. */
  readonly signal?: AbortSignal;
}

export interface Made<T> {
  readonly items: readonly T[];
  /** Of the last event up to here, which may be of a type that is not known: nothing is made of that. */
  readonly lastSeq: number;
}

/**
 * Many of them are cheap: one holds a descriptor while it is read and nothing while it is not, and
 * a buffer only for the time of one read. Iterations may go on side by side. A last line without
 * its newline is not there yet.
 */
export class LogReader implements AsyncDisposable {
  readonly #dir: string;
  readonly #owner: Incarnation | undefined;
  /** Where the last iteration stopped, and in which part: the next one mostly goes on there. */
  #reached: (LogPlace & { readonly part: number | undefined }) | undefined;
  #closed = false;

  private constructor(dir: string, uid: string | undefined) {
    this.#dir = dir;
    this.#owner = uid === undefined ? undefined : new Incarnation(dir, uid);
  }

  /**
   * Reads nothing of another incarnation of the terminal than that with `uid`. Absent: of whichever is
   * there, for who reads a directory that is in nobody's use.
   * @throws TERMINAL_NOT_FOUND when the terminal was deleted; ENOENT when it has no log; Error when that
   * is no ordinary file of ours
   */
  static async open(dir: string, uid?: string): Promise<LogReader> {
    await requireDirectory(dir).catch(whenGone);
    const reader = new LogReader(dir, uid);
    await using _last = await reader.#partFor(Number.MAX_SAFE_INTEGER);
    return reader;
  }

  /** Seq of the oldest event that is kept; 1 when there is none yet. */
  async firstSeq(): Promise<number> {
    this.#requireOpen();
    const seq = await LogPart.oldestSeq(this.#dir);
    await this.#owner?.require();
    return seq;
  }

  /** What another incarnation holds, or lacks, is not told. @throws as `LogPart.openFor` */
  async #partFor(seq: number): Promise<LogPart> {
    const [opened] = await Promise.allSettled([LogPart.openFor(this.#dir, seq)]);
    const part = opened.status === 'fulfilled' ? opened.value : undefined;
    try {
      await this.#owner?.require();
    } catch (error) {
      await part?.close();
      throw error;
    }
    if (opened.status === 'rejected') throw opened.reason;
    return opened.value;
  }

  /**
   * The events from `fromSeq` to `throughSeq`, in order, in batches that hold one event at least;
   * ends early when the log does. Events of types that are not known are left out.
   * @throws SEQ_TRIMMED when `fromSeq` is no longer there; TERMINAL_NOT_FOUND when the terminal was
   * deleted; SyntaxError at an unsound line
   */
  async *read(
    fromSeq: number,
    throughSeq: number,
    options: ReadOptions = {},
  ): AsyncGenerator<TerminalEvent[], void, undefined> {
    const { batchBytes = LINE_BUFFER_BYTES, signal } = options;
    const batch = (stand: Stand) => readBatch(stand, throughSeq, batchBytes);
    for await (const { items } of this.#batches(fromSeq, throughSeq, signal, batch)) {
      if (items.length > 0) yield items;
    }
  }

  /**
   * As `read`, but gives what `make` makes of each event, whose data are valid only during the call, and
   * how far that goes.
   */
  async *readAs<T>(
    fromSeq: number,
    throughSeq: number,
    make: (event: TerminalEvent) => T,
    signal?: AbortSignal,
  ): AsyncGenerator<Made<T>, void, undefined> {
    const batch = ({ part, place }: Stand) =>
      withLineBuffer(async (buffer) => {
        const { bytesRead } = await part.handle.read(buffer, 0, buffer.length, place.offset);
        const { passage, next } = readPassage(buffer.subarray(0, bytesRead), place, throughSeq);
        return { items: passage.events.map((event) => make(event)), next };
      });
    for await (const { items, next } of this.#batches(fromSeq, throughSeq, signal, batch)) {
      yield { items, lastSeq: next.seq - 1 };
    }
  }

  async *#batches<T>(
    fromSeq: number,
    throughSeq: number,
    signal: AbortSignal | undefined,
    batch: (stand: Stand) => Promise<Batch<T>>,
  ): AsyncGenerator<Batch<T>, void, undefined> {
    for await (const stand of this.#stands(fromSeq, throughSeq, signal)) {
      while (stand.place.seq <= throughSeq) {
        signal?.throwIfAborted();
        const read = await batch(stand);
        if (read.next.offset === stand.place.offset) break;
        this.#moveOn(stand, read.next);
        yield read;
      }
    }
  }

  /**
   * As `read`, for who only looks: each passage, of a megabyte at most, is given to `look`, which says
   * whether to go on. Nothing is kept, and what comes next is read meanwhile.
   */
  async scan(
    fromSeq: number,
    throughSeq: number,
    look: (passage: Passage) => boolean,
  ): Promise<void> {
    for await (const stand of this.#stands(fromSeq, throughSeq)) {
      if (!(await this.#scanFrom(stand, throughSeq, look))) return;
    }
  }

  /** To the end of the part, or until `look` has had enough, which is answered by false. */
  async #scanFrom(
    stand: Stand,
    throughSeq: number,
    look: (passage: Passage) => boolean,
  ): Promise<boolean> {
    const { handle } = stand.part;
    let ahead: Promise<LineBlock> | undefined;
    try {
      while (stand.place.seq <= throughSeq) {
        const { offset } = stand.place;
        using block = await (ahead ?? LineBlock.read(handle, offset));
        ahead = block.isFull ? LineBlock.read(handle, offset + block.lineBytes) : undefined;
        // Told when it is awaited.
        ahead?.catch(() => {});
        const { passage, next } = readPassage(block.bytes, stand.place, throughSeq);
        if (next.offset === offset) break;
        this.#moveOn(stand, next);
        if (!look(passage)) return false;
      }
      return true;
    } finally {
      using _unused = await ahead?.catch(() => undefined);
    }
  }

  /**
   * The parts with events from `fromSeq` to `throughSeq`, one after the other, as far as the log goes.
   * Who is given one reads to its end, and moves on the place where the next one is looked for.
   */
  async *#stands(
    fromSeq: number,
    throughSeq: number,
    signal?: AbortSignal,
  ): AsyncGenerator<Stand, void, undefined> {
    this.#requireOpen();
    signal?.throwIfAborted();
    if (fromSeq > throughSeq) return;
    let part = await this.#partFor(fromSeq);
    try {
      const stand: Stand = { part, place: await this.#placeIn(part, fromSeq, signal) };
      while (stand.place.seq >= fromSeq && stand.place.seq <= throughSeq) {
        yield stand;
        const { seq } = stand.place;
        if (seq > throughSeq) return;
        const following = await this.#partFor(seq);
        const ended = following.firstSeq === part.firstSeq;
        await part.close();
        part = following;
        if (ended) return;
        stand.part = part;
        stand.place = await part.locate(seq, signal);
      }
    } finally {
      await part.close();
    }
  }

  #moveOn(stand: Stand, place: LogPlace): void {
    stand.place = place;
    this.#reached = { ...place, part: stand.part.firstSeq };
  }

  async #placeIn(part: LogPart, seq: number, signal: AbortSignal | undefined): Promise<LogPlace> {
    const reached = this.#reached;
    if (reached?.seq === seq && reached.part === part.firstSeq) return reached;
    return part.locate(seq, signal);
  }

  /**
   * The smallest seq such that the events from it through `throughSeq` hold at most `bytes` of
   * output, or `throughSeq` itself when it holds more; not older than the oldest that is kept.
   */
  async seqForTail(bytes: number, throughSeq: number): Promise<number> {
    const oldest = await this.firstSeq();
    let room = bytes;
    let seq = throughSeq + 1;
    while (seq > oldest) {
      await using part = await this.#partFor(seq - 1);
      const place = await part.locate(seq);
      let { offset } = place;
      seq = place.seq;
      let full = false;
      const take: TakeLine = (line, start, end, at) => {
        const event = decodeLine(line, start, end);
        requireSeq(event.seq, seq - 1, at);
        const length = event.type === 'pty.output' ? event.data.length : 0;
        full = length > room && event.seq < throughSeq;
        if (full) return false;
        room -= length;
        seq = event.seq;
        return true;
      };
      while (offset > 0 && !full) {
        const end = offset;
        const taken = await withLineBuffer((buffer) =>
          takeLinesBack(part.handle, end, buffer, take),
        );
        if (taken === 0 && !full) throw new SyntaxError(`no event ends at byte ${end} of the log`);
        offset -= taken;
      }
      if (full) return seq;
    }
    return Math.max(seq, oldest);
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #requireOpen(): void {
    if (this.#closed) throw new Error('the reader is closed');
  }
}

/** A place in a part that is open. */
interface Stand {
  part: LogPart;
  place: LogPlace;
}

/**
 * What is made of the events at a place, and where those after them begin: at that place still, when
 * none is there.
 */
interface Batch<T> {
  readonly items: T[];
  readonly next: LogPlace;
}

async function readBatch(
  { part, place }: Stand,
  throughSeq: number,
  batchBytes: number,
): Promise<Batch<TerminalEvent>> {
  const events: TerminalEvent[] = [];
  let { seq } = place;
  const take: TakeLine = (line, start, end, offset) => {
    if (seq > throughSeq || (seq > place.seq && offset - place.offset >= batchBytes)) return false;
    const event = decodeLine(line, start, end);
    requireSeq(event.seq, seq, offset);
    if (event.type !== 'unknown') events.push(event);
    seq++;
    return true;
  };
  const window = Math.min(Math.max(batchBytes, MAX_LINE_BYTES), LINE_BUFFER_BYTES);
  const bytes = await withLineBuffer((buffer) =>
    takeLines(part.handle, place.offset, buffer.subarray(0, window), take),
  );
  return { items: events, next: { seq, offset: place.offset + bytes } };
}
