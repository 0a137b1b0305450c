/** What tokens allow, put on record before the first use of each in a file, so that it can be told later. */
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type Ceiling, type Grant, writeGrants } from '../core/grant.js';
import {
  type AuditPeer,
  type AuditPrincipal,
  type AuditToken,
  type Written,
  writePeer,
  writePrincipal,
  writeTokenName,
} from './record.js';

/**
 * Tokens and grants that are known to be on record; above it the one used longest ago is forgotten
 * and goes on record once more when it comes again.
 */
const MAX_TOKENS = 4_096;
const MAX_GRANTS = 16_384;

type Known = AuditPrincipal & { readonly token: AuditToken };

export class AuthorityArchive {
  /** By hash of the token: the hashes of its grants by their ids. */
  readonly #tokens = new LRUCache<string, ReadonlyMap<string, string>>({ max: MAX_TOKENS });
  readonly #grants = new LRUCache<string, true>({ max: MAX_GRANTS });

  /** Whether all that this token allows is on record. */
  knows({ hash }: AuditToken): boolean {
    return this.#tokens.get(hash) !== undefined;
  }

  /** The records that must stand before the first that names this token. */
  introduce(principal: Known, peer: AuditPeer | undefined, timeMs: number): readonly Written[] {
    const { token } = principal;
    const hashes = new Map<string, string>();
    const records: Written[] = [];
    for (const grant of token.grants) {
      const text = textOf(grant);
      const hash = createHash('sha256').update(JSON.stringify(text)).digest('hex');
      hashes.set(grant.id, hash);
      if (this.#grants.get(hash)) continue;
      this.#grants.set(hash, true);
      records.push({ record: 'grant', time_ms: timeMs, hash, grant: text });
    }
    this.#tokens.set(token.hash, hashes);
    return [...records, writeToken(principal, hashes, peer, timeMs)];
  }

  /** Of a grant of a token that has been introduced. */
  hashOf(token: AuditToken | undefined, grantId: string | undefined): string | undefined {
    if (token === undefined || grantId === undefined) return undefined;
    return this.#tokens.get(token.hash)?.get(grantId);
  }

  /** Nothing is on record any more as far as is known: another file, or records that were lost. */
  forget(): void {
    this.#tokens.clear();
    this.#grants.clear();
  }
}

/** Normalised, so that equal grants have equal texts. */
function textOf(grant: Grant): Readonly<Record<string, unknown>> {
  return writeGrants([grant])[0] ?? {};
}

function writeToken(
  principal: Known,
  hashes: ReadonlyMap<string, string>,
  peer: AuditPeer | undefined,
  timeMs: number,
): Written {
  const { token, actors, lineage } = principal;
  return {
    record: 'token',
    time_ms: timeMs,
    token_hash: token.hash,
    principal: writePrincipal(principal),
    actors,
    lineage: lineage.map(writeTokenName),
    iat: token.issuedAt,
    nbf: token.notBefore,
    exp: token.expiresAt,
    cnf: token.cnf && { 'x5t#S256': token.cnf.x5tS256 },
    ceiling: ceilingOf(token.grants),
    grants: [...hashes].map(([id, hash]) => ({ id, hash })),
    peer: peer && writePeer(peer),
  };
}

/** The one of the issuer, which all grants of a token have. */
function ceilingOf(grants: readonly Grant[]): Ceiling | undefined {
  const ceiling = grants[0]?.ceiling;
  return ceiling && { owners: ceiling.owners, actions: ceiling.actions };
}
