/** The log of one terminal, while an instance writes it and while none has it open. */
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Name } from '../core/names.js';
import { EventLog } from '../store/eventLog.js';
import { sealedParts } from '../store/logParts.js';
import { sealedEventsFile } from '../store/paths.js';
import type { SeqRange } from '../store/recoveredResource.js';
import type { SupervisorContext } from './context.js';
import type { Instance } from './instance.js';

export class TerminalLog {
  /** While no instance has it open; undefined until somebody asked. */
  #resting: Promise<SeqRange> | undefined;
  #trimmed: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly dir: string,
    private readonly context: Pick<SupervisorContext, 'logOptions' | 'logQuota'>,
    /** Where they are known. */
    seqs: SeqRange | undefined,
  ) {
    if (seqs) this.rest(seqs);
  }

  /**
   * First and next seq while no instance runs. Looked up once: opens the log, which repairs it.
   * @throws when it cannot be opened; asked again, tries again
   */
  range(): Promise<SeqRange> {
    this.#resting ??= this.#measure().catch((error: unknown) => {
      this.#resting = undefined;
      throw error;
    });
    return this.#resting;
  }

  /** An instance has left it so. */
  rest(range: SeqRange): void {
    this.#resting = Promise.resolve(range);
  }

  /**
   * Removes sealed parts that were complete before that time, milliseconds since the Unix epoch. The
   * instance is the one that has the log open, if there is one. True when something was removed.
   */
  async trim(before: number, owner: Name, instance: Instance | undefined): Promise<boolean> {
    if (instance) return (await instance.trimLog(before)) > 0;
    const trimmed = this.#trim(before);
    this.#trimmed = trimmed.catch(() => {});
    const removed = await trimmed;
    this.context.logQuota.add(owner, -removed);
    return removed > 0;
  }

  /**
   * Resolves when nobody has it open, neither to remove from it nor to look up its range, which is
   * known from then on: nobody opens it for that again.
   * @throws as `range`
   */
  async settled(): Promise<void> {
    await this.#trimmed;
    await this.range();
  }

  async #trim(before: number): Promise<number> {
    await this.#resting?.catch(() => {});
    const [oldest] = await sealedParts(this.dir);
    if (oldest === undefined) return 0;
    const { mtimeMs } = await lstat(join(this.dir, sealedEventsFile(oldest)));
    if (mtimeMs >= before) return 0;
    await using log = await EventLog.open(this.dir, this.context.logOptions);
    const removed = await log.removeOlder(before);
    this.rest({ first: log.firstSeq, next: log.nextSeq });
    return removed;
  }

  async #measure(): Promise<SeqRange> {
    await this.#trimmed;
    await using log = await EventLog.open(this.dir, this.context.logOptions);
    return { first: log.firstSeq, next: log.nextSeq };
  }
}
