/**
 * Delegation (RFC 8693): from a token, another one that can do a part of what it can, signed by the
 * server's own issuer.
 */
import { createHash, randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type Widening, widening } from '../core/attenuation.js';
import { counted } from '../core/counted.js';
import { fieldInvalid, GranttyError } from '../core/errors.js';
import { ancestorOf, type Grant } from '../core/grant.js';
import type { RequestMark } from '../core/terminal.js';
import {
  type Claims,
  type Confirmation,
  MAX_DEPTH,
  MAX_LIFETIME_SECONDS,
  parseClaims,
  writeClaims,
} from './claims.js';
import type { IssuerKeyHolder } from './issuerKey.js';
import type { LineageRegistry, TokenId } from './lineageRegistry.js';
import type { VerifiedToken } from './token.js';

/** What the new token is to be. All of it has been checked for form, nothing for authority. */
export interface DelegationOrder {
  /** Becomes the outermost actor. */
  readonly actor: string;
  /** Each with the id of the grant that it is a part of. */
  readonly grants: readonly { readonly grant: Grant; readonly parentId: string }[];
  /** Seconds; absent: to the end of the parent. */
  readonly lifetime?: number;
  /** Absent: that of the parent. */
  readonly maxDepth?: number;
  readonly cnf?: Confirmation;
}

export interface NewToken {
  /** Secret. */
  readonly text: string;
  /** SHA-256 of the text, hex. */
  readonly hash: string;
  readonly keyId: string;
  readonly claims: Claims;
  /** It was signed before, for the same request. */
  readonly repeated?: true;
}

/** Requests known to be on record; one that is forgotten is put on record again when it is repeated. */
const MAX_ON_RECORD = 4096;

export class Delegation {
  /** Requests that are being carried out now, so that of two alike one waits for the other. */
  readonly #underWay = new Map<string, Promise<unknown>>();
  readonly #onRecord = new LRUCache<string, true>({ max: MAX_ON_RECORD });

  constructor(
    private readonly key: IssuerKeyHolder,
    private readonly registry: LineageRegistry,
    /** Steps that a line may have below a token that says nothing of it. */
    private readonly defaultMaxDepth: number,
  ) {}

  /** Name and key of the issuer of delegated tokens. */
  get signer(): Pick<IssuerKeyHolder, 'issuer' | 'keyId'> {
    return this.key;
  }

  /** Whether `token` is `ancestor` or was delegated from it, over any number of steps. */
  isOfLine(token: TokenId, ancestor: TokenId): boolean {
    const isSame = token.issuer === ancestor.issuer && token.jti === ancestor.jti;
    return isSame || this.registry.descends(token, ancestor);
  }

  /** All living tokens that were delegated from `token`, over any number of steps. */
  descendants(token: TokenId): readonly TokenId[] {
    return this.registry.descendants(token);
  }

  /** Undefined for a token that was not delegated here, or whose delegation is forgotten. */
  parentOf(token: TokenId): TokenId | undefined {
    return this.registry.parentOf(token);
  }

  /** Steps that the line of a token may have at most. */
  maxDepthOf({ maxDepth }: VerifiedToken): number {
    return maxDepth ?? this.defaultMaxDepth;
  }

  /**
   * The claims of the new token. Changes nothing.
   * @throws GRANT_MISSING for more than the parent has, FIELD_INVALID; no text of the token is quoted
   */
  claimsFor(parent: VerifiedToken, order: DelegationOrder, nowMs: number): Claims {
    const depth = parent.lineage.length + 1;
    const most = this.maxDepthOf(parent);
    if (depth > most)
      throw notCovered('max_depth', `its line may have ${counted(most, 'step')} at most`);
    const { maxDepth = most } = order;
    if (maxDepth < depth || maxDepth > most) {
      throw fieldInvalid('max_depth', `must be ${depth} to ${Math.min(most, MAX_DEPTH)}`);
    }
    const issuedAt = Math.floor(nowMs / 1000);
    const claims: Claims = {
      issuer: this.key.issuer,
      subject: parent.subject,
      clientId: parent.clientId,
      audience: parent.audience,
      jti: randomUUID(),
      issuedAt,
      notBefore: Math.max(issuedAt, parent.notBefore),
      expiresAt: endOf(parent, order, issuedAt),
      actors: [order.actor, ...parent.actors],
      lineage: [...parent.lineage, ancestor(parent)],
      maxDepth,
      ...(order.cnf && { cnf: order.cnf }),
      grants: order.grants.map(({ grant, parentId }) => partOf(parent, grant, parentId)),
    };
    // What no verifier would take must not be signed.
    return parseClaims(writeClaims(claims), true);
  }

  /**
   * Signs a token of these claims, registers it, and has it put on record. A request of a mark that
   * was carried out before gets the token of then, which is put on record only where that has failed
   * or this server does not know of it.
   * @throws REQUEST_ID_REUSED, FIELD_INVALID for a token that would be too long, and as `putOnRecord`
   */
  async sign(
    claims: Claims,
    mark: RequestMark | undefined,
    putOnRecord: (token: NewToken) => Promise<void>,
  ): Promise<NewToken> {
    if (mark === undefined) {
      const token = await this.#sign(claims);
      await putOnRecord(token);
      return token;
    }
    const before = this.#underWay.get(mark.key);
    const mine = (before ?? Promise.resolve())
      .catch(() => undefined)
      .then(async () => {
        const token = await this.#once(claims, mark);
        if (this.#onRecord.has(mark.key)) return token;
        await putOnRecord(token);
        this.#onRecord.set(mark.key, true);
        return token;
      });
    this.#underWay.set(mark.key, mine);
    try {
      return await mine;
    } finally {
      if (this.#underWay.get(mark.key) === mine) this.#underWay.delete(mark.key);
    }
  }

  async #once(claims: Claims, mark: RequestMark): Promise<NewToken> {
    const answered = this.registry.answered(mark.key);
    if (answered === undefined) {
      this.#onRecord.delete(mark.key);
      return this.#sign(claims, mark);
    }
    if (answered.bodyHash === mark.bodyHash) {
      return { ...(await this.#again(parseClaims(answered.claims, true))), repeated: true };
    }
    throw new GranttyError(
      'REQUEST_ID_REUSED',
      'this request_id was used for a different request; choose a new one',
    );
  }

  async #sign(claims: Claims, mark?: RequestMark): Promise<NewToken> {
    const token = await this.#again(claims);
    const { issuer, jti, expiresAt, lineage } = claims;
    const parent = lineage.at(-1);
    if (parent === undefined) throw new TypeError('delegated from nothing');
    await this.registry.register({
      child: { issuer, jti },
      parent: { issuer: parent.issuer, jti: parent.jti },
      expiresAt,
      ...(mark && { request: { ...mark, claims: writeClaims(claims) } }),
    });
    return token;
  }

  async #again(claims: Claims): Promise<NewToken> {
    const text = await this.key.sign(writeClaims(claims));
    const hash = createHash('sha256').update(text).digest('hex');
    return { text, hash, keyId: this.key.keyId, claims };
  }
}

function ancestor({ issuer, jti, keyId, issuedAt }: VerifiedToken): Claims['lineage'][number] {
  return { issuer, jti, keyId, issuedAt };
}

function endOf(parent: VerifiedToken, { lifetime }: DelegationOrder, issuedAt: number): number {
  const latest = Math.min(parent.expiresAt, issuedAt + MAX_LIFETIME_SECONDS);
  if (lifetime === undefined) return latest;
  if (lifetime < 1 || issuedAt + lifetime > latest) {
    const seconds = latest - issuedAt;
    throw fieldInvalid('lifetime', `must be 1 to ${seconds} seconds: no longer than its parent's`);
  }
  return issuedAt + lifetime;
}

/** @throws GRANT_MISSING when it is no part of the parent's grant of that id */
function partOf(parent: VerifiedToken, grant: Grant, parentId: string): Grant {
  const whole = parent.grants.find(({ id }) => id === parentId);
  if (whole === undefined) throw notCovered('parent_grant_id', 'the token has no such grant');
  const wider = widening(grant, whole);
  if (wider !== undefined) {
    throw notCovered(
      wider,
      `the new grant ${grant.id} goes beyond grant ${parentId} of the token in ${partText(wider)}`,
    );
  }
  return { ...grant, from: [...(whole.from ?? []), ancestorOf(whole)] };
}

function partText(wider: Widening): string {
  if (wider === 'action') return 'its actions: take some of those alone';
  if (wider === 'expires_at') return 'its end (expires_at): it may end no later';
  const [, selector] = /^resource\.(.*)$/.exec(wider) ?? [];
  if (selector === undefined) return `its limit ${wider}: it may allow no more`;
  const owner = selector === 'owner' ? '; a pattern never reaches owner 0' : '';
  return `its resource (${selector}): select no more than that${owner}`;
}

/** `failed` names the first thing that did not hold. */
function notCovered(failed: string, why: string): GranttyError {
  return new GranttyError('GRANT_MISSING', `this cannot be delegated: ${why}`, {
    metadata: { failed },
  });
}
