/** The issuers whose tokens are believed, with their keys, read from files of JWK sets (RFC 7517). */
import { readFile } from 'node:fs/promises';
import { fieldInvalid, GranttyError } from '../core/errors.js';
import type { Ceiling } from '../core/grant.js';
import { asArray, asObject } from '../core/jsonShape.js';
import { parseStrictJson } from '../core/strictJson.js';
import { parseJwk, type VerificationKey } from './jwk.js';

export interface IssuerOptions {
  /** The exact `iss` of its tokens. */
  readonly issuer: string;
  /** Path of its JWK set. */
  readonly jwksFile: string;
  /** What its tokens may reach at most; absent: whatever they say. */
  readonly ceiling?: Ceiling;
}

/** Where a verifier finds keys. */
export interface Keys {
  /** Raised whenever a key came or went: what was verified before must be verified again. */
  readonly epoch: number;
  /**
   * Undefined when the issuer is not believed at all.
   * @throws KEYS_UNAVAILABLE when its keys have never been had
   */
  issuer(name: string): TrustedIssuer | undefined;
}

export interface TrustedIssuer {
  readonly ceiling: Ceiling | undefined;
  /** By kid. */
  readonly keys: ReadonlyMap<string, VerificationKey>;
}

interface LoadedSet {
  readonly text: string;
  readonly keys: ReadonlyMap<string, VerificationKey>;
}

/** Holds no key until `reload` has been called. */
export class KeySet implements Keys {
  readonly #issuers = new Map<string, IssuerOptions>();
  readonly #loaded = new Map<string, LoadedSet>();
  #epoch = 0;
  /** The reload that was asked for last; each waits for the one before. */
  #reloading: Promise<void> = Promise.resolve();

  constructor(issuers: readonly IssuerOptions[]) {
    for (const options of issuers) {
      if (this.#issuers.has(options.issuer)) {
        throw fieldInvalid('issuers', 'names one issuer twice');
      }
      this.#issuers.set(options.issuer, options);
    }
  }

  get epoch(): number {
    return this.#epoch;
  }

  issuer(name: string): TrustedIssuer | undefined {
    const options = this.#issuers.get(name);
    if (options === undefined) return undefined;
    const loaded = this.#loaded.get(name);
    if (loaded === undefined) {
      throw new GranttyError(
        'KEYS_UNAVAILABLE',
        "the keys of the token's issuer are not available",
      );
    }
    return { ceiling: options.ceiling, keys: loaded.keys };
  }

  /**
   * Reads all files again. An issuer whose file cannot be read or is unsound keeps the keys it had;
   * the others change all the same.
   * @throws AggregateError of one error an issuer; its texts name paths and are for the operator
   */
  reload(): Promise<void> {
    const next = this.#reloading.catch(() => undefined).then(() => this.#reloadAll());
    this.#reloading = next;
    return next;
  }

  async #reloadAll(): Promise<void> {
    const failures: Error[] = [];
    for (const { issuer, jwksFile } of this.#issuers.values()) {
      try {
        const text = await readFile(jwksFile, 'utf8');
        if (this.#loaded.get(issuer)?.text === text) continue;
        this.#loaded.set(issuer, { text, keys: await parseJwks(text) });
        this.#epoch += 1;
      } catch (cause) {
        const why = cause instanceof GranttyError ? cause.message : 'cannot be read';
        failures.push(new Error(`keys of issuer ${issuer} in ${jwksFile}: ${why}`, { cause }));
      }
    }
    if (failures.length > 0) {
      throw new AggregateError(failures, failures.map(({ message }) => message).join('; '));
    }
  }
}

/**
 * The keys of a JWK set that verify tokens, by kid. Keys of other kinds and uses are passed over.
 * @throws FIELD_INVALID
 */
export async function parseJwks(text: string): Promise<ReadonlyMap<string, VerificationKey>> {
  const written = asArray('keys', asObject('the set', parseJson(text)).keys);
  const keys = new Map<string, VerificationKey>();
  for (const [index, value] of written.entries()) {
    const key = await parseJwk(`keys[${index}]`, value);
    if (key === undefined) continue;
    if (keys.has(key.kid)) throw fieldInvalid(`keys[${index}].kid`, 'is that of another key too');
    keys.set(key.kid, key);
  }
  if (keys.size === 0) throw fieldInvalid('keys', 'holds no key that could verify a token');
  return keys;
}

function parseJson(text: string): unknown {
  try {
    return parseStrictJson(text);
  } catch (cause) {
    throw new GranttyError('FIELD_INVALID', 'is not sound JSON', { cause });
  }
}
