/** The trail on disk: what each record needs, who is introduced before it, and when it is vouched for. */
import type { Logger } from 'pino';
import { ensurePrivateDir } from '../store/files.js';
import type { AuditClock } from './auditClock.js';
import { type OpenAuditFile, openAuditFile } from './auditFile.js';
import { AuthorityArchive } from './authorityArchive.js';
import { type Draft, MAX_LINE_BYTES } from './chain.js';
import { type ChangeRecord, type PolicyChange, writeChange, writePolicy } from './changeRecord.js';
import { type CheckpointKey, openCheckpointKey } from './checkpoint.js';
import { Checkpoints } from './checkpoints.js';
import { Coalescer, type Counted, writeCounted } from './coalescer.js';
import { CommitQueue, type Item, type Settle } from './commitQueue.js';
import { fieldFilter, type OmittableField } from './fieldFilter.js';
import { durabilityOf, floodOf, mayUseReserve } from './handling.js';
import { Ledger } from './ledger.js';
import {
  type AuditPrincipal,
  type IntentRecord,
  intentText,
  type OutcomeRecord,
  outcomeText,
  type Written,
  writeIntent,
  writeOutcome,
} from './record.js';
import { RESERVE_BYTES } from './reserve.js';
import type { AuditTrail } from './trail.js';

/** Milliseconds for which denials alike are counted: input of one stream, strangers of one address. */
const INPUT_WINDOW_MS = 1_000;
const STRANGER_WINDOW_MS = 10_000;

/**
 * Effects under way whose intents are in the reserve, so that their outcomes go there too. Above
 * it, outcomes of the oldest are lost, and that is counted.
 */
const MAX_RESERVED_INTENTS = 4_096;

/** Bytes of the texts of a set of policies, as JSON. */
const MAX_CHANGE_BYTES = MAX_LINE_BYTES / 2;

export interface FileTrailOptions {
  /** Made with mode 0700 where it is missing. Held by the caller: one trail writes to it. */
  readonly dir: string;
  readonly clock: AuditClock;
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>;
  /** Facts on the server that stand at the head of each file, such as version and isolation. */
  readonly header: Readonly<Record<string, string | number>>;
  /** Fields that are not recorded. */
  readonly omit?: readonly OmittableField[];
  /** Room that is kept for when there is none. Default 16 MiB. */
  readonly reserveBytes?: number;
  readonly openFile?: OpenAuditFile;
}

/** Finds or makes the trail; resolves when the start is on record. @throws when it cannot be */
export async function openFileTrail(options: FileTrailOptions): Promise<FileTrail> {
  const { dir, clock, logger, reserveBytes = RESERVE_BYTES, openFile = openAuditFile } = options;
  await ensurePrivateDir(dir);
  const key = await openCheckpointKey(dir);
  const ledger = await Ledger.open({ dir, open: openFile, timeMs: clock.now(), reserveBytes });
  for (const torn of ledger.found.torn) logger.error({ torn }, 'a part of the audit was set aside');
  const trail = new FileTrail(options, key, ledger);
  try {
    await trail.begin();
  } catch (error) {
    await ledger.close();
    throw error;
  }
  return trail;
}

export class FileTrail implements AuditTrail, AsyncDisposable {
  readonly #queue: CommitQueue;
  readonly #archive = new AuthorityArchive();
  /** Absent where an operator keeps nothing out of the record. */
  readonly #filter: ((record: Written) => Written) | undefined;
  readonly #input: Coalescer;
  readonly #strangers: Coalescer;
  /** Decisions whose intents are in the reserve. */
  readonly #reserved = new Set<string>();
  #policy: PolicyChange | undefined;
  /** The policies in force could not be put on record. */
  #owed = false;
  /** Outcomes and counts that could not be written and have not been told yet. */
  #lost = 0;
  readonly #checkpoints: Checkpoints;
  /** What becomes of records that nobody waits for. */
  readonly #unawaited: Settle = {
    resolve: (lines) => {
      this.#catchUp();
      this.#written(lines);
    },
    reject: () => {
      this.#lost += 1;
    },
  };
  #begun = false;
  #sealed = false;

  constructor(
    private readonly options: FileTrailOptions,
    private readonly key: CheckpointKey,
    private readonly ledger: Ledger,
  ) {
    const { clock, logger, omit = [] } = options;
    this.#filter = omit.length === 0 ? undefined : fieldFilter(omit);
    const count = (kind: 'input' | 'stranger') => (counted: Counted) => {
      const written = writeCounted(kind, counted, clock.now());
      this.#background(() => this.#draft(written), false);
    };
    this.#input = new Coalescer(clock, INPUT_WINDOW_MS, count('input'));
    this.#strangers = new Coalescer(clock, STRANGER_WINDOW_MS, count('stranger'));
    this.#checkpoints = new Checkpoints({ ...options, key }, () => this.#queue);
    this.#queue = new CommitQueue(
      ledger,
      {
        closing: () => (this.#begun ? [this.#checkpoints.draft()] : []),
        opening: () => this.#opening(),
        closed: (line) => this.#checkpoints.vouch(line),
        lost: () => this.#archive.forget(),
        failing: (error) => logger.error({ err: error }, 'audit records cannot be written'),
        recovered: () => logger.info({}, 'audit records are written again'),
      },
      () => clock.now(),
    );
  }

  /** Puts the start on record, and what was found. Called once. */
  async begin(): Promise<void> {
    const { head, file, sealed, torn } = this.ledger.found;
    const timeMs = this.options.clock.now();
    const start = {
      record: 'start',
      time_ms: timeMs,
      ...this.options.header,
      key: this.key.id,
      after: { file, seq: head.seq, hash: head.hash, sealed },
    };
    await this.#queue.append({
      compose: () => [
        this.#draft(start),
        ...torn.map((piece) => this.#draft({ record: 'torn', time_ms: timeMs, ...piece })),
      ],
      durability: 'synced',
      reserved: true,
    });
    this.#begun = true;
    // From the first moment on there is something to hold the trail against.
    await this.#checkpoints.take();
    this.#checkpoints.start();
  }

  intent(record: IntentRecord): Promise<string> {
    return new Promise((resolve, reject) => {
      const flood = floodOf(record);
      if (flood) {
        const coalescer = flood.kind === 'input' ? this.#input : this.#strangers;
        const countedUnder = coalescer.absorb(flood.key, record);
        if (countedUnder !== undefined) {
          resolve(countedUnder);
          return;
        }
      }
      const reserved = mayUseReserve(record);
      const item: Item = {
        compose: () => this.#introduced(record.principal, record, () => this.#intent(record)),
        durability: durabilityOf(record),
        reserved,
      };
      const written = (lines: readonly string[]) => {
        if (reserved && lines.length === 0) this.#keep(record.decisionId);
        this.#written(lines);
        resolve(record.decisionId);
      };
      this.#queue.put(item, { resolve: written, reject });
    });
  }

  outcome(record: OutcomeRecord): void {
    const draft = () =>
      this.#filter === undefined ? outcomeText(record) : this.#draft(writeOutcome(record));
    this.#background(draft, this.#reserved.delete(record.decisionId));
  }

  async change(record: ChangeRecord): Promise<void> {
    const written = writeChange(record);
    if (JSON.stringify(written).length > MAX_CHANGE_BYTES) {
      throw new RangeError(`a change of more than ${MAX_CHANGE_BYTES} bytes cannot be recorded`);
    }
    // It is in force whether or not there is room to say so.
    if (record.change === 'policy') this.#policy = record;
    const child = record.change === 'delegated' ? record.child : undefined;
    try {
      const lines = await this.#queue.append({
        compose: () => this.#introduced(child, record, () => this.#draft(written)),
        durability: 'synced',
        reserved: record.change === 'revoked',
      });
      this.#written(lines);
    } catch (error) {
      if (record.change === 'policy') this.#owed = true;
      throw error;
    }
  }

  /** Seals the trail: nothing is taken any more, and the last line vouches for all of it. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#sealed) return;
    this.#checkpoints.stop();
    this.#input.flush();
    this.#strangers.flush();
    this.#catchUp();
    this.#sealed = true;
    // Both at once, so that nothing gets in behind the last checkpoint.
    const sealing = this.#checkpoints.take(true);
    try {
      await this.#queue.close();
      await sealing;
      await this.#checkpoints.settled();
    } finally {
      await this.ledger.close();
    }
  }

  #intent(record: IntentRecord): string {
    const { principal, grantId } = record;
    const grantHash = this.#archive.hashOf(principal?.token, grantId);
    return this.#filter === undefined
      ? intentText(record, grantHash)
      : this.#draft(writeIntent(record, grantHash));
  }

  /** A record with those before it that say what its token allows. */
  #introduced(
    principal: AuditPrincipal | undefined,
    about: { readonly timeMs: number; readonly peer?: IntentRecord['peer'] },
    draft: () => string,
  ): Draft[] {
    const token = principal?.token;
    if (!principal || !token || this.#archive.knows(token)) return [draft()];
    const introduction = this.#archive.introduce({ ...principal, token }, about.peer, about.timeMs);
    return [...introduction.map((written) => this.#draft(written)), draft()];
  }

  #draft(written: Written): string {
    return JSON.stringify(this.#filter?.(written) ?? written);
  }

  /** At the head of a file: which server writes it, and the policies, so that the file stands alone. */
  #opening(): Draft[] {
    this.#archive.forget();
    const timeMs = this.options.clock.now();
    const { file } = this.ledger;
    const head = { record: 'file', time_ms: timeMs, ...this.options.header, key: this.key.id };
    return [
      this.#draft({ ...head, after: { file } }),
      ...(this.#policy ? [this.#draft(writePolicy(this.#policy, timeMs, true))] : []),
    ];
  }

  /** Writes what nobody waits for. What cannot be written is counted. */
  #background(draft: () => string, reserved: boolean): void {
    const compose = () => [draft()];
    this.#queue.put({ compose, durability: 'written', reserved, patient: true }, this.#unawaited);
  }

  /** Once there is room again, the trail says what it lacks. */
  #catchUp(): void {
    if (this.#sealed || this.ledger.inReserve) return;
    const { timeMs, lost, owed } = {
      timeMs: this.options.clock.now(),
      lost: this.#lost,
      owed: this.#owed ? this.#policy : undefined,
    };
    if (lost === 0 && owed === undefined) return;
    this.#lost = 0;
    this.#owed = false;
    this.#queue
      .append({
        compose: () => [
          ...(lost > 0 ? [this.#draft({ record: 'lost', time_ms: timeMs, count: lost })] : []),
          ...(owed ? [this.#draft(writePolicy(owed, timeMs))] : []),
        ],
        durability: 'written',
        reserved: false,
      })
      .then(
        (lines) => this.#written(lines),
        () => {
          this.#lost += lost;
          this.#owed ||= owed !== undefined;
        },
      );
  }

  #keep(decisionId: string): void {
    if (this.#reserved.size < MAX_RESERVED_INTENTS) this.#reserved.add(decisionId);
  }

  #written(lines: readonly string[]): void {
    if (!this.#sealed) this.#checkpoints.count(lines.length);
  }
}
