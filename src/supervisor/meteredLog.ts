/** A terminal's log within its owner's quota: output is refused above it, an exit never. */
import type { TerminalEvent } from '../core/event.js';
import type { Name } from '../core/names.js';
import type { EventLog } from '../store/eventLog.js';
import type { LogQuota } from './logQuota.js';
import type { OutputLog } from './outputPipeline.js';

export class MeteredLog implements OutputLog {
  /** Bytes of the log that the quota knows of. */
  #counted: number;

  constructor(
    private readonly log: EventLog,
    private readonly owner: Name,
    private readonly quota: LogQuota,
  ) {
    this.#counted = log.size;
  }

  get nextSeq(): number {
    return this.log.nextSeq;
  }

  /** @throws QUOTA_LOG_BYTES besides what the log throws; nothing was written then */
  async append(events: readonly TerminalEvent[]): Promise<void> {
    if (events.some(({ type }) => type === 'pty.output')) this.quota.check(this.owner);
    await this.log.append(events);
    this.#count();
  }

  /** See `EventLog.removeOlder`. */
  async removeOlder(before: number): Promise<number> {
    const removed = await this.log.removeOlder(before);
    this.#count();
    return removed;
  }

  #count(): void {
    const { size } = this.log;
    this.quota.add(this.owner, size - this.#counted);
    this.#counted = size;
  }

  sync(): Promise<void> {
    return this.log.sync();
  }
}
