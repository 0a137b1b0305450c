/**
 * The issuers whose tokens are believed, with their keys. A set that was had is believed for one
 * hour; within it, it is read again in the background, one read at a time.
 */
import { fieldInvalid, GranttyError } from '../core/errors.js';
import type { Ceiling } from '../core/grant.js';
import type { VerificationKey } from './jwk.js';
import { parseJwks } from './jwks.js';
import { type JwksSource, readJwks, sourceName } from './jwksSource.js';

export type IssuerOptions = JwksSource & {
  /** The exact `iss` of its tokens. */
  readonly issuer: string;
  /** What its tokens may reach at most; absent: whatever they say. */
  readonly ceiling?: Ceiling;
};

/** Where a verifier finds keys. */
export interface Keys {
  /** Raised whenever a key came or went: what was verified before must be verified again. */
  readonly epoch: number;
  /**
   * Undefined when the issuer is not believed at all.
   * @throws KEYS_UNAVAILABLE when its keys have never been had, or not for too long
   */
  issuer(name: string): TrustedIssuer | undefined;
}

export interface TrustedIssuer {
  readonly ceiling: Ceiling | undefined;
  /** By kid. */
  readonly keys: ReadonlyMap<string, VerificationKey>;
}

/** What became of the keys of an issuer. */
export interface KeyChange {
  readonly issuer: string;
  /** Key ids. A key that was replaced under its id is in both. */
  readonly added: readonly string[];
  readonly retired: readonly string[];
  /** They are not believed until they have been read again. */
  readonly stale: boolean;
}

export interface RefreshOptions {
  /** Runs `task` once after `ms` milliseconds unless the returned function is called before. */
  readonly after: (ms: number, task: () => void) => () => void;
  readonly onChange: (change: KeyChange) => void;
  /** Told each time that a set could not be had; its text names paths, for the operator. */
  readonly onFailure: (error: Error) => void;
}

/** Milliseconds for which a set is believed after it was read. */
export const MAX_STALENESS_MS = 60 * 60_000;

/** Milliseconds from one read to the next: of a URL, and of a file, which costs next to nothing. */
const URL_PERIOD_MS = 5 * 60_000;
const FILE_PERIOD_MS = 30_000;

/** Milliseconds to wait after a failure; twice as long after each one more, up to the last. */
const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 60_000;

interface LoadedSet {
  readonly keys: ReadonlyMap<string, VerificationKey>;
  /** When the read began, milliseconds since the Unix epoch. */
  readonly at: number;
}

class IssuerKeys {
  loaded: LoadedSet | undefined;
  /** The read that was asked for last; each waits for the one before. */
  reading: Promise<void> = Promise.resolve();
  failures = 0;
  /** It has been told that the keys are stale. */
  isStale = false;

  constructor(readonly options: IssuerOptions) {}

  get isFixed(): boolean {
    return 'jwks' in this.options;
  }
}

/** Holds no key until `reload` has been called. */
export class KeySet implements Keys {
  readonly #issuers = new Map<string, IssuerKeys>();
  readonly #now: () => number;
  #epoch = 0;
  #onChange: (change: KeyChange) => void = () => {};

  /** `now` is in milliseconds since the Unix epoch. */
  constructor(issuers: readonly IssuerOptions[], now: () => number = Date.now) {
    this.#now = now;
    for (const options of issuers) {
      if (this.#issuers.has(options.issuer)) {
        throw fieldInvalid('issuers', 'names one issuer twice');
      }
      this.#issuers.set(options.issuer, new IssuerKeys(options));
    }
  }

  get epoch(): number {
    return this.#epoch;
  }

  issuer(name: string): TrustedIssuer | undefined {
    const found = this.#issuers.get(name);
    if (found === undefined) return undefined;
    const { loaded, options, isFixed } = found;
    if (loaded === undefined || (!isFixed && this.#now() - loaded.at >= MAX_STALENESS_MS)) {
      throw new GranttyError(
        'KEYS_UNAVAILABLE',
        "the keys of the token's issuer are not available",
      );
    }
    return { ceiling: options.ceiling, keys: loaded.keys };
  }

  /** The ids of all keys, issuer by issuer. */
  held(): readonly KeyChange[] {
    return [...this.#issuers.values()].map(({ options: { issuer }, loaded, isStale }) => ({
      issuer,
      added: [...(loaded?.keys.keys() ?? [])],
      retired: [],
      stale: loaded === undefined || isStale,
    }));
  }

  /**
   * Reads all sets again. An issuer whose set cannot be had or is unsound keeps the keys it had; the
   * others change all the same.
   * @throws AggregateError of one error an issuer; its texts name paths and are for the operator
   */
  async reload(): Promise<void> {
    const reads = [...this.#issuers.values()].map((issuer) => this.#read(issuer));
    const failures = (await Promise.allSettled(reads)).flatMap((result) =>
      result.status === 'rejected' ? [result.reason as Error] : [],
    );
    if (failures.length > 0) {
      throw new AggregateError(failures, failures.map(({ message }) => message).join('; '));
    }
  }

  /** Reads all sets again from time to time, until disposed. */
  watch({ after, onChange, onFailure }: RefreshOptions): Disposable {
    this.#onChange = onChange;
    const cancels = new Map<string, () => void>();
    const stop = new AbortController();
    const schedule = (name: string, ms: number, task: () => void) => {
      cancels.get(name)?.();
      if (!stop.signal.aborted) cancels.set(name, after(ms, task));
    };
    for (const issuer of this.#issuers.values()) {
      if (issuer.isFixed) continue;
      const { issuer: name } = issuer.options;
      const again = () => {
        schedule(`${name} read`, delayOf(issuer), () => void read());
        const left = MAX_STALENESS_MS - (this.#now() - (issuer.loaded?.at ?? 0));
        if (left > 0) schedule(`${name} stale`, left, () => this.#lookAt(issuer));
      };
      const read = () => this.#read(issuer).catch(onFailure).then(again);
      again();
    }
    return {
      [Symbol.dispose]: () => {
        stop.abort();
        for (const cancel of cancels.values()) cancel();
        this.#onChange = () => {};
      },
    };
  }

  /** Begins once the read before has ended: what was written before it was asked for is seen. */
  #read(issuer: IssuerKeys): Promise<void> {
    const next = issuer.reading.catch(() => undefined).then(() => this.#load(issuer));
    issuer.reading = next;
    return next;
  }

  async #load(issuer: IssuerKeys): Promise<void> {
    const { options } = issuer;
    const at = this.#now();
    try {
      const keys = await parseJwks(await readJwks(options));
      issuer.failures = 0;
      this.#replace(issuer, { keys, at });
    } catch (cause) {
      issuer.failures += 1;
      this.#lookAt(issuer);
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`keys of issuer ${options.issuer} in ${sourceName(options)}: ${why}`, {
        cause: cause instanceof Error ? (cause.cause ?? cause) : cause,
      });
    }
  }

  #replace(issuer: IssuerKeys, next: LoadedSet): void {
    const before = issuer.loaded?.keys ?? new Map<string, VerificationKey>();
    const missingIn = (keys: typeof before) => (key: VerificationKey) =>
      keys.get(key.kid)?.written !== key.written;
    const added = [...next.keys.values()].filter(missingIn(before)).map(({ kid }) => kid);
    const retired = [...before.values()].filter(missingIn(next.keys)).map(({ kid }) => kid);
    const wasStale = issuer.isStale;
    // Keys that stayed the same stay the same objects.
    issuer.loaded = added.length + retired.length > 0 ? next : { keys: before, at: next.at };
    issuer.isStale = false;
    if (added.length + retired.length > 0 || wasStale) this.#changed(issuer, added, retired);
  }

  /** Says once that the keys of an issuer have become stale. */
  #lookAt(issuer: IssuerKeys): void {
    const { loaded, isStale } = issuer;
    if (loaded === undefined || isStale || this.#now() - loaded.at < MAX_STALENESS_MS) return;
    issuer.isStale = true;
    this.#changed(issuer, [], []);
  }

  #changed({ options, isStale }: IssuerKeys, added: string[], retired: string[]): void {
    this.#epoch += 1;
    this.#onChange({ issuer: options.issuer, added, retired, stale: isStale });
  }
}

function delayOf({ options, failures }: IssuerKeys): number {
  if (failures > 0) return Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (failures - 1));
  return 'jwksUrl' in options ? URL_PERIOD_MS : FILE_PERIOD_MS;
}
