/** What changes authority itself: policies, keys, delegated and revoked tokens. */
import type { Revoked } from '../core/revoked.js';
import {
  type AuditPrincipal,
  type AuditToken,
  type TokenName,
  type Written,
  writeTokenName,
} from './record.js';

export type ChangeRecord = { readonly timeMs: number } & Change;

type Change =
  | PolicyChange
  /** The keys of an issuer. `stale`: none of them is believed until they have been fetched again. */
  | {
      readonly change: 'keys';
      readonly issuer: string;
      readonly added: readonly string[];
      readonly retired: readonly string[];
      readonly stale: boolean;
    }
  /** A token that this server signed for another actor. */
  | {
      readonly change: 'delegated';
      readonly decisionId: string;
      readonly parent: TokenName;
      readonly child: AuditPrincipal & { readonly token: AuditToken };
      /** The same token as before, to the same request. */
      readonly repeated?: true;
    }
  /** `decisionId` is absent when the operator did it. */
  | { readonly change: 'revoked'; readonly decisionId?: string; readonly what: Revoked };

/** The set of policies that is in force from now on. */
export interface PolicyChange {
  readonly change: 'policy';
  /** SHA-256 of `text` in UTF-8, hex. */
  readonly hash: string;
  /** All that its answers depend on, to the letter. */
  readonly text: string;
}

/** A change as it is written, member by member. */
export function writeChange(record: ChangeRecord): Written {
  const { timeMs } = record;
  switch (record.change) {
    case 'policy':
      return writePolicy(record, timeMs);
    case 'keys': {
      const { issuer, added, retired, stale } = record;
      return { record: 'keys', time_ms: timeMs, iss: issuer, added, retired, stale };
    }
    case 'delegated': {
      const { decisionId, parent, child, repeated } = record;
      return {
        record: 'delegated',
        time_ms: timeMs,
        decision_id: decisionId,
        parent: writeTokenName(parent),
        child: writeTokenName(child),
        repeated,
      };
    }
    case 'revoked': {
      const { decisionId, what } = record;
      return { record: 'revoked', time_ms: timeMs, decision_id: decisionId, ...writeRevoked(what) };
    }
  }
}

/** `restated`: it is in force already and stands at the head of another file. */
export function writePolicy(
  { hash, text }: PolicyChange,
  timeMs: number,
  restated?: true,
): Written {
  return { record: 'policy', time_ms: timeMs, hash, text, restated };
}

function writeRevoked(what: Revoked) {
  switch (what.kind) {
    case 'token':
      return { iss: what.issuer, jti: what.jti };
    case 'subject':
      return { iss: what.issuer, sub: what.subject, issued_before: what.issuedBefore };
    case 'key':
      return { iss: what.issuer, kid: what.keyId };
  }
}
