/** The revocations of one state directory: in memory at once, then in a file that survives. */
import { GranttyError } from '../core/errors.js';
import { asInteger, asObject, asText, type JsonObject } from '../core/jsonShape.js';
import type { Revoked } from '../core/revoked.js';
import { MAX_LIFETIME_SECONDS } from './claims.js';
import { DurableLines } from './durableLines.js';
import type { Revocation, Revocations } from './revocation.js';
import type { VerifiedToken } from './token.js';

/** Milliseconds after which no token is left that a revocation could be about: twice the longest life. */
const KEEP_MS = 2 * MAX_LIFETIME_SECONDS * 1000;

/** Lines in the file beyond those that still matter, at which it is written anew. */
const MAX_IDLE_LINES = 4096;

/** Lines after which it is looked at what still matters. */
const LOOK_EVERY = 1024;

/** Characters of each text of a revocation, as in tokens. */
const MAX_TEXT_LENGTH = 512;

interface Entry {
  readonly what: Revoked;
  readonly at: number;
  durable: Promise<void>;
  isKept: boolean;
  /** Made while no server ran that could have put it on record. */
  readonly isOffline: boolean;
}

/** What has been revoked of one issuer. */
class IssuerRevocations {
  readonly tokens = new Map<string, Entry>();
  readonly keys = new Map<string, Entry>();
  /** The latest of each subject. */
  readonly subjects = new Map<string, Entry & { readonly issuedBefore: number }>();
}

export class RevocationList implements Revocations, AsyncDisposable {
  readonly #byIssuer = new Map<string, IssuerRevocations>();
  #epoch = 0;
  #linesInFile = 0;

  private constructor(
    private readonly file: DurableLines,
    private readonly now: () => number,
  ) {}

  /**
   * Reads the file, or makes it. `now` is in milliseconds since the Unix epoch.
   * @throws Error that names the line when one is unsound: to pass it over could undo a revocation
   */
  static async open(path: string, now: () => number): Promise<RevocationList> {
    const { lines, file } = await DurableLines.open(path);
    const list = new RevocationList(file, now);
    try {
      lines.forEach((line, index) => {
        const entry = parseLine(line, `${path}:${index + 1}`);
        list.#put({ ...entry, durable: Promise.resolve(), isKept: true });
      });
      list.#linesInFile = lines.length;
      await list.#compact();
      return list;
    } catch (error) {
      await file[Symbol.asyncDispose]();
      throw error;
    }
  }

  get epoch(): number {
    return this.#epoch;
  }

  isRevoked(token: VerifiedToken): boolean {
    if (this.#byIssuer.size === 0) return false;
    return (
      this.#isNamed(token, token.subject) ||
      token.lineage.some((above) => this.#isNamed(above, token.subject))
    );
  }

  isTokenRevoked(issuer: string, jti: string): boolean {
    return this.#byIssuer.get(issuer)?.tokens.has(jti) ?? false;
  }

  isKeyRevoked(issuer: string, keyId: string): boolean {
    return this.#byIssuer.get(issuer)?.keys.has(keyId) ?? false;
  }

  /** `isOffline`: where no server runs, for the next one to put it on record; see `unrecorded`. */
  revoke(what: Revoked, isOffline = false): Revocation {
    const known = this.#find(what);
    if (known?.isKept) return known;
    const entry: Entry = known ?? {
      what,
      at: this.now(),
      durable: Promise.resolve(),
      isKept: true,
      isOffline,
    };
    if (known === undefined) {
      this.#put(entry);
      this.#epoch += 1;
    }
    entry.isKept = true;
    entry.durable = this.#keep(entry).catch((error: unknown) => {
      entry.isKept = false;
      throw error;
    });
    return entry;
  }

  /** Those that were made while no server ran. */
  unrecorded(): readonly { readonly what: Revoked; readonly at: number }[] {
    return this.#entries().filter(({ isOffline }) => isOffline);
  }

  /** It is on record now. Resolves when that is known to the next server too. */
  async recorded({ what, at }: { readonly what: Revoked; readonly at: number }): Promise<void> {
    const entry = { what, at, durable: Promise.resolve(), isKept: true, isOffline: false };
    await this.#keep(entry);
    this.#put(entry);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.file[Symbol.asyncDispose]();
  }

  #isNamed(
    { issuer, jti, keyId, issuedAt }: Pick<VerifiedToken, 'issuer' | 'jti' | 'keyId' | 'issuedAt'>,
    subject: string,
  ): boolean {
    const found = this.#byIssuer.get(issuer);
    if (found === undefined) return false;
    return (
      found.tokens.has(jti) ||
      found.keys.has(keyId) ||
      issuedAt < (found.subjects.get(subject)?.issuedBefore ?? 0)
    );
  }

  /** The entry by which all that is asked for is revoked already. */
  #find(what: Revoked): Entry | undefined {
    const found = this.#byIssuer.get(what.issuer);
    switch (what.kind) {
      case 'token':
        return found?.tokens.get(what.jti);
      case 'key':
        return found?.keys.get(what.keyId);
      case 'subject': {
        const entry = found?.subjects.get(what.subject);
        return entry && entry.issuedBefore >= what.issuedBefore ? entry : undefined;
      }
    }
  }

  #put(entry: Entry): void {
    const { what } = entry;
    const found = this.#byIssuer.get(what.issuer) ?? new IssuerRevocations();
    this.#byIssuer.set(what.issuer, found);
    switch (what.kind) {
      case 'token':
        found.tokens.set(what.jti, entry);
        break;
      case 'key':
        found.keys.set(what.keyId, entry);
        break;
      case 'subject': {
        const { issuedBefore } = what;
        const known = found.subjects.get(what.subject);
        if (known === undefined || known.issuedBefore <= issuedBefore) {
          found.subjects.set(what.subject, Object.assign(entry, { issuedBefore }));
        }
      }
    }
  }

  #entries(): Entry[] {
    return [...this.#byIssuer.values()].flatMap(({ tokens, keys, subjects }) => [
      ...tokens.values(),
      ...keys.values(),
      ...subjects.values(),
    ]);
  }

  async #keep(entry: Entry): Promise<void> {
    await this.file.append([writeLine(entry)]);
    this.#linesInFile += 1;
    if (this.#linesInFile % LOOK_EVERY === 0) await this.#compact();
  }

  /** Forgets what no living token can be named by. On a full disk the file stays as it is. */
  async #compact(): Promise<void> {
    const now = this.now();
    for (const { tokens, subjects } of this.#byIssuer.values()) {
      for (const [jti, entry] of tokens) if (now - entry.at >= KEEP_MS) tokens.delete(jti);
      for (const [subject, entry] of subjects) {
        const last = Math.max(entry.at, entry.issuedBefore * 1000);
        if (now - last >= KEEP_MS) subjects.delete(subject);
      }
    }
    const left = this.#entries();
    if (this.#linesInFile - left.length < MAX_IDLE_LINES) return;
    const lines = left.filter(({ isKept }) => isKept).map(writeLine);
    await this.file.replace(lines).then(
      () => {
        this.#linesInFile = lines.length;
      },
      () => undefined,
    );
  }
}

function writeLine({ what, at, isOffline }: Omit<Entry, 'durable' | 'isKept'>): string {
  return JSON.stringify({ ...writeRevoked(what), at_ms: at, ...(isOffline && { offline: true }) });
}

function parseLine(line: string, where: string): Omit<Entry, 'durable' | 'isKept'> {
  try {
    const written = asObject('line', JSON.parse(line));
    return {
      what: parseRevoked(written),
      at: asInteger('at_ms', written.at_ms, 0),
      isOffline: written.offline === true,
    };
  } catch (cause) {
    throw new Error(
      `${where} is not a revocation that this version can read; find out what changed the file before you take the line out`,
      { cause },
    );
  }
}

/**
 * As it is written: `revoked` says which kind it is.
 * @throws FIELD_INVALID
 */
export function parseRevoked(written: JsonObject): Revoked {
  const text = (name: string) => asText(name, written[name], MAX_TEXT_LENGTH);
  const issuer = text('iss');
  switch (written.revoked) {
    case 'token':
      return { kind: 'token', issuer, jti: text('jti') };
    case 'key':
      return { kind: 'key', issuer, keyId: text('kid') };
    case 'subject': {
      const issuedBefore = asInteger('issued_before', written.issued_before, 0);
      return { kind: 'subject', issuer, subject: text('sub'), issuedBefore };
    }
    default:
      throw new GranttyError('FIELD_INVALID', 'revoked: must be token, subject or key');
  }
}

/** The reverse of `parseRevoked`. */
export function writeRevoked(what: Revoked): JsonObject {
  const { kind, issuer } = what;
  switch (what.kind) {
    case 'token':
      return { revoked: kind, iss: issuer, jti: what.jti };
    case 'key':
      return { revoked: kind, iss: issuer, kid: what.keyId };
    case 'subject':
      return { revoked: kind, iss: issuer, sub: what.subject, issued_before: what.issuedBefore };
  }
}
