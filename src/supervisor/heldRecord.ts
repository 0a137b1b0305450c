/** A terminal's record as it is now, and its way to disk: one write after another. */
import type { TerminalRecord } from '../core/terminal.js';
import { writePassingRecord, writeRecord } from '../store/metadata.js';

export class HeldRecord {
  #value: TerminalRecord;
  #written: Promise<void> = Promise.resolve();
  /** The record that the text projections say; undefined when that is not known. */
  #projected: TerminalRecord | undefined;

  constructor(
    private readonly dir: string,
    record: TerminalRecord,
    private readonly now: () => number,
    /** Called when a record is on disk. */
    private readonly onWritten: () => void,
  ) {
    this.#value = record;
  }

  get value(): TerminalRecord {
    return this.#value;
  }

  /**
   * The record is this one from now on; resolves when it is on disk (`durable`: through a power cut).
   * The projections follow what is durable: what is not is a step on the way to it, or back, or a size,
   * of which they say nothing.
   */
  async save(record: TerminalRecord, durable: boolean): Promise<void> {
    const updated = { ...record, updatedAt: this.now() };
    this.#value = updated;
    const written = this.#written.then(() => this.#write(updated, durable));
    this.#written = written.catch(() => {});
    await written;
    this.onWritten();
  }

  async #write(record: TerminalRecord, durable: boolean): Promise<void> {
    if (!durable) return writePassingRecord(this.dir, record);
    const projected = this.#projected;
    this.#projected = undefined;
    await writeRecord(this.dir, record, { projected });
    this.#projected = record;
  }

  /** Resolves when no write is under way. */
  settled(): Promise<void> {
    return this.#written;
  }
}
