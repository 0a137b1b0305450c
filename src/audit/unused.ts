/** Authority that nobody used: grants, and actions of grants, that no allowed decision came from. */
import { grantOnRecord } from './grantOnRecord.js';
import { readRecords } from './reading.js';

export interface UnusedGrant {
  readonly iss: string;
  readonly sub: string;
  /** Id in its token. */
  readonly grant: string;
  readonly grant_hash: string;
  /** Actions that were never used; all that it has when `used` is empty. */
  readonly unused: readonly string[];
  readonly used: readonly string[];
  readonly last_seen_ms: number;
}

interface Holding {
  readonly iss: string;
  readonly sub: string;
  readonly id: string;
  readonly used: Set<string>;
  lastSeenMs: number;
}

/**
 * Over tokens that were presented from a time on. Reads the trail once and keeps what grants there
 * are, by principal. A list needs no certain grant: it counts for all that its caller holds.
 */
export async function unused(dir: string, fromMs = 0): Promise<readonly UnusedGrant[]> {
  const actions = new Map<string, readonly string[]>();
  /** By principal, then by hash of the grant. */
  const principals = new Map<string, Map<string, Holding>>();
  for await (const record of readRecords(dir, ['grant', 'token', 'intent'])) {
    if (record.record === 'grant') {
      actions.set(record.hash, grantOnRecord(record.grant)?.actions ?? []);
      continue;
    }
    const { principal, time_ms: timeMs } = record;
    if (principal === undefined || timeMs < fromMs) continue;
    const { iss, sub } = principal;
    const key = JSON.stringify([iss, sub]);
    const holdings = principals.get(key) ?? new Map<string, Holding>();
    principals.set(key, holdings);
    if (record.record === 'token') {
      for (const { id, hash } of record.grants) {
        const used = holdings.get(hash)?.used ?? new Set();
        holdings.set(hash, { iss, sub, id, used, lastSeenMs: timeMs });
      }
    } else if (record.decision === 'allow' && record.action !== undefined) {
      const { grant_hash: hash, action } = record;
      const through = hash === undefined ? [...holdings.values()] : [holdings.get(hash)];
      for (const holding of through) holding?.used.add(action);
    }
  }
  return [...principals.values()].flatMap((holdings) =>
    [...holdings].flatMap(([hash, holding]) => leftOver(hash, holding, actions.get(hash) ?? [])),
  );
}

function leftOver(
  hash: string,
  { iss, sub, id, used, lastSeenMs }: Holding,
  held: readonly string[],
): readonly UnusedGrant[] {
  const unused = held.filter((action) => !used.has(action));
  if (unused.length === 0) return [];
  return [
    {
      iss,
      sub,
      grant: id,
      grant_hash: hash,
      unused,
      used: held.filter((action) => used.has(action)),
      last_seen_ms: lastSeenMs,
    },
  ];
}
