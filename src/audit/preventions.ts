/** What stood against tokens at some time though they were valid: revocations, and the keys that signed them. */
import { readRecords } from './reading.js';
import {
  nameKey,
  type WrittenName,
  type WrittenRevoked,
  type WrittenToken,
} from './writtenRecords.js';

export type Prevention = 'revoked' | 'key retired' | 'keys stale';

interface Ancestor {
  readonly iat: number;
  readonly sub: string;
  readonly kid: string;
}

type Link = WrittenName & Omit<Ancestor, 'kid'> & Partial<Pick<Ancestor, 'kid'>>;

/**
 * What stood against each of the tokens at that time, by their keys. Reads the trail once, and keeps
 * of it what concerns these tokens and those that they descend from.
 */
export async function preventions(
  dir: string,
  atMs: number,
  tokens: ReadonlyMap<string, WrittenToken>,
): Promise<Map<string, Prevention>> {
  const all = [...tokens.values()];
  const named = new Set(all.flatMap(({ lineage }) => lineage.map(nameKey)));
  const ancestors = new Map<string, Ancestor>();
  const subjects = new Set(all.map(({ principal }) => principal.sub));
  const revoked: WrittenRevoked[] = [];
  const retired = new Set<string>();
  const stale = new Set<string>();
  for await (const record of readRecords(dir, ['token', 'revoked', 'keys'])) {
    if (record.record === 'token') {
      const { principal, iat } = record;
      const key = nameKey(principal);
      if (named.has(key)) ancestors.set(key, { iat, sub: principal.sub, kid: principal.kid });
      continue;
    }
    if (record.time_ms > atMs) continue;
    if (record.record === 'keys') {
      for (const kid of record.added) retired.delete(JSON.stringify([record.iss, kid]));
      for (const kid of record.retired) retired.add(JSON.stringify([record.iss, kid]));
      if (record.stale) stale.add(record.iss);
      else stale.delete(record.iss);
    } else if (concerns(record, tokens, named, subjects)) revoked.push(record);
  }
  const prevented = new Map<string, Prevention>();
  for (const [key, token] of tokens) {
    // A token is as good as the worst of those that it descends from.
    const line = lineOf(token, ancestors);
    const isRetired = line.some(({ iss, kid }) => retired.has(JSON.stringify([iss, kid])));
    if (revoked.some((one) => isRevoked(line, one))) prevented.set(key, 'revoked');
    else if (isRetired) prevented.set(key, 'key retired');
    else if (line.some(({ iss }) => stale.has(iss))) prevented.set(key, 'keys stale');
  }
  return prevented;
}

/** The token and those that it descends from, each as far as the trail knows it. */
function lineOf(
  { principal, iat, lineage }: WrittenToken,
  ancestors: ReadonlyMap<string, Ancestor>,
): readonly Link[] {
  const { sub, kid } = principal;
  return [
    { ...principal, iat, sub, kid },
    // Of an ancestor that is not on record, the child's time is the latest that it can have.
    ...lineage.map((name) => ({ iat, sub, ...name, ...ancestors.get(nameKey(name)) })),
  ];
}

function concerns(
  { iss, jti, sub }: WrittenRevoked,
  tokens: ReadonlyMap<string, WrittenToken>,
  named: ReadonlySet<string>,
  subjects: ReadonlySet<string>,
): boolean {
  if (sub !== undefined) return subjects.has(sub);
  if (jti === undefined) return true;
  const key = nameKey({ iss, jti });
  return tokens.has(key) || named.has(key);
}

/** Whether the revocation is of one of the line. */
function isRevoked(line: readonly Link[], what: WrittenRevoked): boolean {
  return line.some(({ iss, jti, iat, sub, kid }) => {
    if (iss !== what.iss) return false;
    if (what.jti !== undefined) return jti === what.jti;
    if (what.kid !== undefined) return kid === what.kid;
    return sub === what.sub && iat < (what.issued_before ?? 0);
  });
}
