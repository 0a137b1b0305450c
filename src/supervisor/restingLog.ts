/** First and next seq of a log while no instance has it open. */
import { EventLog, type EventLogOptions } from '../store/eventLog.js';
import type { SeqRange } from '../store/recoveredResource.js';

export class RestingLog {
  /** Undefined until somebody asked. */
  #range: Promise<SeqRange> | undefined;

  constructor(
    private readonly dir: string,
    private readonly options: EventLogOptions,
  ) {}

  /** Looked up once: opens the log, which repairs it. @throws when it cannot be opened; asked again, tries again */
  range(): Promise<SeqRange> {
    this.#range ??= this.#measure().catch((error: unknown) => {
      this.#range = undefined;
      throw error;
    });
    return this.#range;
  }

  /** What an instance has left. */
  set(range: SeqRange): void {
    this.#range = Promise.resolve(range);
  }

  async #measure(): Promise<SeqRange> {
    await using log = await EventLog.open(this.dir, this.options);
    return { first: log.firstSeq, next: log.nextSeq };
  }
}
