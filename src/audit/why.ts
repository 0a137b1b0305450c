/** Why one decision was taken: the record, and the texts of the grant and the policies behind it. */
import { readRecords } from './reading.js';
import type {
  WrittenCounted,
  WrittenGrant,
  WrittenIntent,
  WrittenOutcome,
  WrittenPolicy,
  WrittenToken,
} from './writtenRecords.js';

export interface Reasons {
  /** Absent where there were too many denials at once to write one of each kind: `counted` is all then. */
  readonly intent?: WrittenIntent;
  readonly outcome?: WrittenOutcome;
  /** Denials alike that were only counted. */
  readonly counted?: WrittenCounted;
  readonly token?: WrittenToken;
  /** Texts of the token's grants, by their ids in it. */
  readonly grants: Readonly<Record<string, unknown>>;
  readonly policy?: WrittenPolicy;
}

/** Reads the trail three times, in constant memory. Undefined when it knows no such decision. */
export async function why(dir: string, decisionId: string): Promise<Reasons | undefined> {
  let intent: WrittenIntent | undefined;
  let outcome: WrittenOutcome | undefined;
  let counted: WrittenCounted | undefined;
  for await (const record of readRecords(dir, ['intent', 'outcome', 'counted'])) {
    if (record.record === 'counted') {
      if ([record.like, record.decision_id].includes(decisionId)) counted = record;
    } else if (record.decision_id === decisionId) {
      if (record.record === 'intent') intent = record;
      else outcome = record;
    }
  }
  if (intent === undefined) return counted && { counted, grants: {} };
  const { token, policy } = await behind(dir, intent);
  return {
    intent,
    ...(outcome && { outcome }),
    ...(counted && { counted }),
    ...(token && { token }),
    grants: token ? await textsOf(dir, token) : {},
    ...(policy && { policy }),
  };
}

async function behind(dir: string, { principal, policy: asked }: WrittenIntent) {
  let token: WrittenToken | undefined;
  let policy: WrittenPolicy | undefined;
  for await (const record of readRecords(dir, ['token', 'policy'])) {
    if (record.record === 'policy') {
      if (record.hash === asked?.hash) policy ??= record;
    } else if (record.principal.iss === principal?.iss && record.principal.jti === principal.jti) {
      token ??= record;
    }
  }
  return { token, policy };
}

async function textsOf(dir: string, token: WrittenToken): Promise<Record<string, unknown>> {
  const texts = new Map<string, WrittenGrant['grant']>();
  const hashes = new Set(token.grants.map(({ hash }) => hash));
  for await (const { hash, grant } of readRecords(dir, ['grant'])) {
    if (hashes.has(hash)) texts.set(hash, grant);
  }
  return Object.fromEntries(token.grants.map(({ id, hash }) => [id, texts.get(hash)]));
}
