/** The chain as it stands on disk: the file of the day, the reserve, and what comes next. */
import { join } from 'node:path';
import type { AuditFile, OpenAuditFile } from './auditFile.js';
import { type Draft, type Head, hashLine, lineAfter, linkAfter } from './chain.js';
import { joinReserve, recover, type Torn } from './recovery.js';
import { Reserve } from './reserve.js';
import { dayFile, RESERVE_FILE } from './trailFiles.js';

export interface LedgerOptions {
  readonly dir: string;
  readonly open: OpenAuditFile;
  readonly timeMs: number;
  readonly reserveBytes: number;
}

/** Bytes of the reserve that are copied at once. */
const COPY_BYTES = 1024 * 1024;

/** Bytes that are kept to put lines together in: a batch of some hundred. A larger one has its own. */
const KEPT_BYTES = 256 * 1024;

const NEWLINE = 0x0a;

/** Bytes of one UTF-16 unit in UTF-8 at most. */
const MAX_UTF8_BYTES = 3;

/**
 * Appends, syncs of one file and everything about the reserve are one at a time; `sync` alone may
 * run beside an append.
 */
export class Ledger {
  /** Lines in the reserve that the file has not got: until it has, nothing may be appended to it. */
  #pending: { from: number; to: number };
  #syncing: Promise<void> = Promise.resolve();
  /** The last second that was seen to belong into the file that was open then. */
  #inTime: { readonly second: number; readonly current: object } | undefined;
  /** Where lines are put together; only one append is under way. */
  #linked: Buffer = Buffer.allocUnsafeSlow(KEPT_BYTES);

  private constructor(
    private readonly options: LedgerOptions,
    private readonly reserve: Reserve,
    private current: { readonly name: string; readonly file: AuditFile } | undefined,
    private last: Head,
    pending: { from: number; to: number },
    /** How the last server left the trail. */
    readonly found: {
      readonly head: Head;
      readonly file: string | undefined;
      readonly sealed: boolean;
      readonly torn: readonly Torn[];
    },
  ) {
    this.#pending = pending;
  }

  static async open(options: LedgerOptions): Promise<Ledger> {
    const { dir, timeMs } = options;
    const reserve = await Reserve.open(join(dir, RESERVE_FILE), options.reserveBytes);
    try {
      const { current, head: fileHead, sealed, torn } = await recover(dir, options.open, timeMs);
      const joined = await joinReserve(dir, reserve, fileHead, timeMs);
      const { head, pending } = joined;
      if (pending.from === pending.to && reserve.used > 0) await reserve.clear();
      return new Ledger(options, reserve, current, head, pending, {
        head,
        file: current?.name,
        sealed: sealed && head.seq === fileHead.seq,
        torn: [...torn, ...joined.torn],
      });
    } catch (error) {
      await reserve.close();
      throw error;
    }
  }

  get head(): Head {
    return this.last;
  }

  /** Name of the file that lines go to; undefined before the first. */
  get file(): string | undefined {
    return this.current?.name;
  }

  get inReserve(): boolean {
    return this.#pending.from < this.#pending.to;
  }

  /** Whether lines of this time belong into a file that is not open yet. The clock may step back. */
  isDue(timeMs: number): boolean {
    const { current } = this;
    if (current === undefined) return true;
    // Once for each second: the name of a day takes as long as half a record.
    const second = Math.floor(timeMs / 1000);
    if (this.#inTime?.second === second && this.#inTime.current === current) return false;
    if (dayFile(timeMs) > current.name) return true;
    this.#inTime = { second, current };
    return false;
  }

  /**
   * Links the drafts and appends them, all or none of them; they are with the kernel then.
   * @throws when there is no room, or while lines wait in the reserve
   */
  async append(drafts: readonly Draft[]): Promise<string[]> {
    if (this.inReserve || this.current === undefined) throw new Error('lines wait in the reserve');
    const { name, file } = this.current;
    const linked = this.#link(drafts, name, file.size);
    await file.append(linked.bytes);
    this.last = linked.head;
    return linked.lines;
  }

  /** Resolves when all that was appended before the call is durable. */
  sync(): Promise<void> {
    // What is appended while one runs may have missed it: each call waits for one of its own.
    const run = this.#syncing.then(() => this.current?.file.sync());
    this.#syncing = run.catch(() => undefined);
    return run;
  }

  /** Appends to the reserve instead, durably. @throws when that is used up too */
  async appendToReserve(drafts: readonly Draft[]): Promise<void> {
    // A power cut must not take lines that these follow from. It needs no room that is not taken.
    if (!this.inReserve) await this.sync().catch(() => undefined);
    const { head, bytes } = this.#link(drafts, RESERVE_FILE, this.reserve.used);
    await this.reserve.append(bytes);
    this.last = head;
    this.#pending = {
      from: this.inReserve ? this.#pending.from : this.reserve.used - bytes.length,
      to: this.reserve.used,
    };
  }

  /** Copies what is in the reserve to where it belongs. @throws while there is no room */
  async drain(): Promise<void> {
    const { from, to } = this.#pending;
    if (from === to) return;
    const { file } = this.current ?? (await this.#openDay(this.options.timeMs));
    const before = file.size;
    const buffer = Buffer.allocUnsafe(Math.min(COPY_BYTES, to - from));
    try {
      for (let position = from; position < to; ) {
        const length = Math.min(buffer.length, to - position);
        const { bytesRead } = await this.reserve.read(buffer, 0, length, position);
        if (bytesRead === 0) throw new Error('the audit reserve is shorter than what was written');
        await file.append(buffer.subarray(0, bytesRead));
        position += bytesRead;
      }
      await this.sync();
    } catch (error) {
      await file.truncate(before).catch(() => undefined);
      throw error;
    }
    this.#pending = { from: 0, to: 0 };
    await this.reserve.clear();
  }

  /**
   * Goes on in the file of that time. `closing` ends the file so far, and its lines are returned;
   * `opening` begins the new one. When there is no room for that, the file so far stays in use.
   */
  async rollOver(
    timeMs: number,
    closing: readonly Draft[],
    opening: readonly Draft[],
  ): Promise<string[]> {
    const former = this.current;
    const name = dayFile(timeMs);
    const file = await this.options.open(join(this.options.dir, name));
    let closed: string[] = [];
    try {
      if (former) {
        closed = await this.append(closing);
        await this.sync();
      }
      const linked = this.#link(opening, name, file.size);
      await file.append(linked.bytes);
      this.last = linked.head;
    } catch (error) {
      await file.close();
      throw error;
    }
    this.current = { name, file };
    await former?.file.close();
    return closed;
  }

  async close(): Promise<void> {
    await this.#syncing;
    try {
      await this.current?.file.close();
    } finally {
      await this.reserve.close();
    }
  }

  async #openDay(timeMs: number): Promise<{ readonly name: string; readonly file: AuditFile }> {
    const name = dayFile(timeMs);
    const file = await this.options.open(join(this.options.dir, name));
    this.current = { name, file };
    return this.current;
  }

  /** The bytes are good until the next call; each line is put there once, and hashed where it stands. */
  #link(drafts: readonly Draft[], file: string, size: number) {
    const lines: string[] = [];
    let { last: head } = this;
    let end = 0;
    for (const draft of drafts) {
      const begin = end;
      const line = lineAfter(head, draft, { file, offset: size + begin });
      const room = begin + MAX_UTF8_BYTES * line.length;
      if (room > this.#linked.length) this.#linked = grown(this.#linked, room, begin);
      end =
        typeof draft === 'string'
          ? writeLinked(this.#linked, begin, head, draft)
          : begin + this.#linked.write(line, begin);
      head = { seq: head.seq + 1, hash: hashLine(this.#linked.subarray(begin, end)) };
      lines.push(line);
    }
    const bytes = this.#linked.subarray(0, end);
    if (this.#linked.length > KEPT_BYTES) this.#linked = Buffer.allocUnsafeSlow(KEPT_BYTES);
    return { lines, head, bytes };
  }
}

/**
 * Writes the line that `lineAfter` gives as text, from its parts: V8 puts a text together only for who
 * looks at it, and that is one copy less for every record. Answers where the line ends.
 */
function writeLinked(bytes: Buffer, begin: number, head: Head, draft: string): number {
  const link = linkAfter(head);
  const brace = begin + link.length - 1;
  const end = brace + bytes.write(draft, brace);
  bytes.write(link, begin, 'latin1');
  bytes[end] = NEWLINE;
  return end + 1;
}

/** As large as is asked for at least, with what there is up to `end`. */
function grown(bytes: Buffer, size: number, end: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(Math.max(size, 2 * bytes.length));
  bytes.copy(larger, 0, 0, end);
  return larger;
}
