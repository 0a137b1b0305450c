/**
 * Which living tokens this server has delegated, and from which: who may revoke what, and what a
 * repeated request is answered with.
 */
import { asInteger, asObject, asObjectOf, asText, type JsonObject } from '../core/jsonShape.js';
import type { RequestMark } from '../core/terminal.js';
import { DurableLines } from './durableLines.js';

/** A token by its name. */
export interface TokenId {
  readonly issuer: string;
  readonly jti: string;
}

/** One delegation, before the token is given to anybody. */
export interface Delegated {
  readonly child: TokenId;
  readonly parent: TokenId;
  /** End of the child, seconds since the Unix epoch. */
  readonly expiresAt: number;
  /** With the claims that it was answered with, so that the same token can be signed again. */
  readonly request?: RequestMark & { readonly claims: JsonObject };
}

interface Entry {
  readonly parent: TokenId;
  readonly expiresAt: number;
}

interface Answered {
  readonly bodyHash: string;
  readonly claims: JsonObject;
  readonly at: number;
}

/** Milliseconds for which a request id is remembered. */
const REQUEST_MEMORY_MS = 10 * 60_000;

/** Request ids remembered at once, with claims of some KiB each; above it the oldest is forgotten. */
const MAX_REMEMBERED = 4096;

/** Seconds for which a delegation is kept after its token's end. */
const KEEP_SECONDS = 60;

/** Lines in the file beyond those that still matter, at which it is written anew. */
const MAX_IDLE_LINES = 4096;

/** Delegations after which it is looked at what still matters. */
const LOOK_EVERY = 1024;

const MAX_TEXT_LENGTH = 512;

export class LineageRegistry implements AsyncDisposable {
  /** By the child's name. */
  readonly #entries = new Map<string, Entry>();
  readonly #children = new Map<string, Set<string>>();
  readonly #answered = new Map<string, Answered>();
  #linesInFile = 0;

  private constructor(
    private readonly file: DurableLines,
    private readonly now: () => number,
  ) {}

  /**
   * Reads the file, or makes it. `now` is in milliseconds since the Unix epoch.
   * @throws Error that names the line when one is unsound
   */
  static async open(path: string, now: () => number): Promise<LineageRegistry> {
    const { lines, file } = await DurableLines.open(path);
    const registry = new LineageRegistry(file, now);
    try {
      lines.forEach((line, index) => {
        const { at, ...delegated } = parseLine(line, `${path}:${index + 1}`);
        registry.#put(delegated, at);
      });
      registry.#linesInFile = lines.length;
      await registry.#compact();
      return registry;
    } catch (error) {
      await file[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Resolves when it is durable: only then may the token be given away. */
  async register(delegated: Delegated): Promise<void> {
    const at = this.now();
    await this.file.append([writeLine(delegated, at)]);
    this.#linesInFile += 1;
    this.#put(delegated, at);
    if (this.#linesInFile % LOOK_EVERY === 0) await this.#compact();
  }

  /** What a request of this key was answered with. */
  answered(key: string): { readonly bodyHash: string; readonly claims: JsonObject } | undefined {
    const found = this.#answered.get(key);
    return found && this.now() - found.at < REQUEST_MEMORY_MS ? found : undefined;
  }

  parentOf(token: TokenId): TokenId | undefined {
    return this.#entries.get(keyOf(token))?.parent;
  }

  /** Whether `token` was delegated from `ancestor`, over any number of steps. */
  descends(token: TokenId, ancestor: TokenId): boolean {
    const { issuer, jti } = ancestor;
    let parent = this.parentOf(token);
    while (parent !== undefined) {
      if (parent.issuer === issuer && parent.jti === jti) return true;
      parent = this.parentOf(parent);
    }
    return false;
  }

  /** All that were delegated from `token`, over any number of steps, and have not expired. */
  descendants(token: TokenId): readonly TokenId[] {
    const now = this.now() / 1000;
    const found: TokenId[] = [];
    const look = (key: string) => {
      for (const child of this.#children.get(key) ?? []) {
        const entry = this.#entries.get(child);
        if (entry !== undefined && entry.expiresAt > now) found.push(nameOf(child));
        look(child);
      }
    };
    look(keyOf(token));
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.file[Symbol.asyncDispose]();
  }

  #put({ child, parent, expiresAt, request }: Delegated, at: number): void {
    const [key, above] = [keyOf(child), keyOf(parent)];
    this.#entries.set(key, { parent, expiresAt });
    const children = this.#children.get(above) ?? new Set();
    this.#children.set(above, children.add(key));
    if (request === undefined) return;
    this.#answered.set(request.key, { bodyHash: request.bodyHash, claims: request.claims, at });
    for (const [oldest, answer] of this.#answered) {
      const isOver = this.now() - answer.at >= REQUEST_MEMORY_MS;
      if (!isOver && this.#answered.size <= MAX_REMEMBERED) break;
      this.#answered.delete(oldest);
    }
  }

  /** Forgets what has expired. On a full disk the file stays as it is. */
  async #compact(): Promise<void> {
    const now = this.now() / 1000;
    for (const [key, { parent, expiresAt }] of this.#entries) {
      if (now - expiresAt < KEEP_SECONDS) continue;
      this.#entries.delete(key);
      const siblings = this.#children.get(keyOf(parent));
      siblings?.delete(key);
      if (siblings?.size === 0) this.#children.delete(keyOf(parent));
    }
    if (this.#linesInFile - this.#entries.size < MAX_IDLE_LINES) return;
    const lines = [...this.#entries].map(([key, entry]) =>
      writeLine({ child: nameOf(key), ...entry }, this.now()),
    );
    await this.file.replace(lines).then(
      () => {
        this.#linesInFile = lines.length;
      },
      () => undefined,
    );
  }
}

function keyOf({ issuer, jti }: TokenId): string {
  return JSON.stringify([issuer, jti]);
}

function nameOf(key: string): TokenId {
  const [issuer, jti] = JSON.parse(key);
  return { issuer, jti };
}

function writeLine({ child, parent, expiresAt, request }: Delegated, at: number): string {
  return JSON.stringify({
    child: { iss: child.issuer, jti: child.jti },
    parent: { iss: parent.issuer, jti: parent.jti },
    exp: expiresAt,
    at_ms: at,
    ...(request && {
      request: { key: request.key, body_hash: request.bodyHash, claims: request.claims },
    }),
  });
}

function parseLine(line: string, where: string): Delegated & { at: number } {
  try {
    const { child, parent, exp, at_ms, request } = asObject('line', JSON.parse(line));
    return {
      child: parseName('child', child),
      parent: parseName('parent', parent),
      expiresAt: asInteger('exp', exp, 0),
      at: asInteger('at_ms', at_ms, 0),
      ...(request !== undefined && { request: parseRequest(request) }),
    };
  } catch (cause) {
    throw new Error(
      `${where} is not a delegation that this version can read; find out what changed the file before you take the line out`,
      { cause },
    );
  }
}

function parseName(field: string, value: unknown): TokenId {
  const { iss, jti } = asObjectOf(field, value, ['iss', 'jti']);
  return {
    issuer: asText(`${field}.iss`, iss, MAX_TEXT_LENGTH),
    jti: asText(`${field}.jti`, jti, MAX_TEXT_LENGTH),
  };
}

function parseRequest(value: unknown): NonNullable<Delegated['request']> {
  const { key, body_hash, claims } = asObject('request', value);
  return {
    key: asText('request.key', key, MAX_TEXT_LENGTH),
    bodyHash: asText('request.body_hash', body_hash, MAX_TEXT_LENGTH),
    claims: asObject('request.claims', claims),
  };
}
