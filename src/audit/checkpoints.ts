/** When a trail is vouched for, and who is told: the file itself, HEAD, and the log. */
import { join } from 'node:path';
import type { Logger } from 'pino';
import { writeFileAtomic } from '../store/files.js';
import type { AuditClock } from './auditClock.js';
import type { SignedDraft } from './chain.js';
import { type CheckpointKey, draftCheckpoint } from './checkpoint.js';
import type { CommitQueue } from './commitQueue.js';
import { HEAD_FILE } from './trailFiles.js';

/** Records, and milliseconds, after which all so far is vouched for. */
const CHECKPOINT_RECORDS = 1_000;
const CHECKPOINT_MS = 60_000;

export interface CheckpointsOptions {
  readonly dir: string;
  readonly key: CheckpointKey;
  readonly clock: AuditClock;
  readonly logger: Pick<Logger, 'info' | 'error'>;
}

export class Checkpoints {
  /** Records since the last one. */
  #records = 0;
  #taking: Promise<void> | undefined;
  /** What HEAD is to hold; older ones that still wait to be written are passed over. */
  #latest: string | undefined;
  #heads: Promise<void> = Promise.resolve();
  #cancelTimer: () => void = () => {};

  constructor(
    private readonly options: CheckpointsOptions,
    private readonly queue: () => CommitQueue,
  ) {}

  /** From now on there is one for each minute in which anything was recorded. */
  start(): void {
    this.#cancelTimer = this.options.clock.after(CHECKPOINT_MS, () => {
      this.start();
      if (this.#records > 0) this.#soon();
    });
  }

  stop(): void {
    this.#cancelTimer();
  }

  count(records: number): void {
    this.#records += records;
    if (this.#records >= CHECKPOINT_RECORDS) this.#soon();
  }

  draft(final = false): SignedDraft {
    return draftCheckpoint(this.options.key, this.options.clock.now(), final);
  }

  /** Resolves when it is durable. Failing to take one is for the log: the records stand. */
  async take(final = false): Promise<void> {
    this.#records = 0;
    try {
      const [line] = await this.queue().append({
        compose: () => [this.draft(final)],
        durability: 'synced',
        reserved: false,
      });
      if (line !== undefined) this.vouch(line);
    } catch (error) {
      this.options.logger.error({ err: error }, 'no audit checkpoint');
    }
  }

  /** Tells a checkpoint that is durable; the log may leave the host. */
  vouch(line: string): void {
    const { dir, logger } = this.options;
    logger.info({ head: line.trimEnd() }, 'audit checkpoint');
    this.#latest = line;
    this.#heads = this.#heads
      .then(() => (line === this.#latest ? writeFileAtomic(join(dir, HEAD_FILE), line) : undefined))
      .catch((error) => logger.error({ err: error }, 'audit HEAD could not be written'));
  }

  /** Resolves when nothing is under way any more. */
  async settled(): Promise<void> {
    await this.#taking;
    await this.#heads;
  }

  #soon(): void {
    this.#taking ??= this.take().finally(() => {
      this.#taking = undefined;
    });
  }
}
