/** Who could have done something at some time: over grants, times, revocations, keys and policies. */
import type { AccessRequest } from '../core/access.js';
import { type Capability, isCapability } from '../core/capability.js';
import { type Ceiling, coverage, type Grant } from '../core/grant.js';
import { type Name, parseName, type TerminalTuple } from '../core/names.js';
import { isSelector } from '../core/selector.js';
import { grantOnRecord } from './grantOnRecord.js';
import { type Prevention, preventions } from './preventions.js';
import { readRecords } from './reading.js';
import { nameKey, type WrittenToken } from './writtenRecords.js';

/** Seconds by which an issuer's clock may be ahead, as tokens are verified. */
const CLOCK_SKEW_SECONDS = 30;

export interface WhoCouldQuestion {
  readonly action: Capability;
  readonly id: string;
  /** Absent: found out from what was done to terminals of that id. */
  readonly owner?: string;
  readonly agent?: string;
  readonly session?: string;
  /** Milliseconds since the Unix epoch. */
  readonly atMs: number;
  /** Makes policies of their archived text. Absent: what grants cover is taken for permitted. */
  readonly openPolicy?: (archived: ArchivedPolicy) => Judge;
}

export interface ArchivedPolicy {
  readonly hash: string;
  readonly text: string;
}

export type Judge = (asked: {
  readonly principal: {
    readonly issuer: string;
    readonly subject: string;
    readonly clientId: string;
    readonly actors: readonly string[];
  };
  readonly access: AccessRequest;
  readonly peer: { readonly address: string; readonly provesPossession: boolean };
}) => { readonly permit: boolean; readonly policyIds: readonly string[] };

/** A token that was valid then, with a grant that covered the action. */
export interface Holder {
  readonly iss: string;
  readonly sub: string;
  readonly jti: string;
  readonly client_id?: string;
  /** The latest first. */
  readonly actors: readonly string[];
  readonly grant: string;
  readonly grant_hash: string;
  /** Limits of the grant that hold for each request. */
  readonly constraints: unknown;
  /** Seconds since the Unix epoch. */
  readonly exp: number;
  /** Policies that decided. */
  readonly policies: readonly string[];
  /** Why it could not all the same; absent when it could. */
  readonly prevented?: Prevention | 'policy';
}

export interface WhoCouldAnswer {
  readonly target: TerminalTuple;
  readonly policy?: string;
  readonly could: readonly Holder[];
  readonly prevented: readonly Holder[];
}

interface Candidate {
  readonly token: WrittenToken;
  readonly grants: readonly { readonly grant: Grant; readonly hash: string }[];
}

/**
 * Reads the trail three times, and keeps no more of it than the answer is long. A token that was
 * never presented to a server is not in the trail, so it is not in the answer.
 * @throws Error when the trail does not say which terminal is meant
 */
export async function whoCould(dir: string, question: WhoCouldQuestion): Promise<WhoCouldAnswer> {
  const { target, policy } = await situation(dir, question);
  const candidates = await holders(dir, question, target);
  const tokens = new Map([...candidates].map(([key, { token }]) => [key, token]));
  const prevented = await preventions(dir, question.atMs, tokens);
  const judge = policy && question.openPolicy?.(policy);
  const could: Holder[] = [];
  const couldNot: Holder[] = [];
  for (const candidate of candidates.values()) {
    const why = prevented.get(nameKey(candidate.token.principal));
    const holder = decide(question.action, target, candidate, why, judge);
    (holder.prevented === undefined ? could : couldNot).push(holder);
  }
  return { target, ...(policy && { policy: policy.hash }), could, prevented: couldNot };
}

/** The terminal as it was then, and the policies in force. */
async function situation(
  dir: string,
  { id, owner, agent, session, atMs }: WhoCouldQuestion,
): Promise<{ target: TerminalTuple; policy: ArchivedPolicy | undefined }> {
  /** By owner: the last before the time, or else the first after it. */
  const found = new Map<string, { agent: string; session: string; before: boolean }>();
  let policy: ArchivedPolicy | undefined;
  for await (const record of readRecords(dir, ['intent', 'policy'])) {
    const before = record.time_ms <= atMs;
    if (record.record === 'policy') {
      if (before) policy = { hash: record.hash, text: record.text };
      continue;
    }
    const { target, decision } = record;
    // A refused create names whatever its caller wrote.
    if (decision !== 'allow' || target?.terminal !== id) continue;
    if (target.agent === undefined || target.session === undefined) continue;
    if (owner !== undefined && target.owner !== owner) continue;
    if (before || !found.has(target.owner)) {
      found.set(target.owner, { agent: target.agent, session: target.session, before });
    }
  }
  if (owner === undefined && found.size > 1) {
    throw new Error(`${[...found.keys()].join(', ')} had a terminal ${id}: say whose`);
  }
  const [[foundOwner, stored] = []] = found;
  return {
    target: tupleOf({
      owner: owner ?? foundOwner,
      agent: agent ?? stored?.agent,
      session: session ?? stored?.session,
      id,
    }),
    policy,
  };
}

function tupleOf(parts: Record<keyof TerminalTuple, string | undefined>): TerminalTuple {
  const name = (field: keyof TerminalTuple): Name => {
    const text = parts[field];
    if (text !== undefined) return parseName(field, text);
    throw new Error(`the trail knows no terminal ${parts.id}: say its owner, agent and session`);
  };
  return { owner: name('owner'), agent: name('agent'), session: name('session'), id: name('id') };
}

/** Tokens that were valid then and have a grant that covers the action. */
async function holders(
  dir: string,
  { action, atMs }: WhoCouldQuestion,
  target: TerminalTuple,
): Promise<Map<string, Candidate>> {
  const seconds = Math.floor(atMs / 1000);
  const latest = seconds + CLOCK_SKEW_SECONDS;
  /** Only grants that reach the terminal. */
  const reaching = new Map<string, Grant>();
  const candidates = new Map<string, Candidate>();
  for await (const record of readRecords(dir, ['grant', 'token'])) {
    if (record.record === 'grant') {
      const grant = grantOnRecord(record.grant);
      if (grant && covers(grant, action, target, seconds)) reaching.set(record.hash, grant);
      continue;
    }
    if (record.iat > latest || record.nbf > latest || record.exp <= seconds) continue;
    const ceiling = ceilingOf(record);
    const grants = record.grants.flatMap(({ hash }) => {
      const grant = reaching.get(hash);
      if (grant === undefined) return [];
      const bound = ceiling ? { ...grant, ceiling } : grant;
      return covers(bound, action, target, seconds) ? [{ grant: bound, hash }] : [];
    });
    if (grants.length > 0) candidates.set(nameKey(record.principal), { token: record, grants });
  }
  return candidates;
}

function covers(grant: Grant, action: Capability, target: TerminalTuple, seconds: number): boolean {
  return coverage(grant, requestOf(grant, action, target), seconds).covered;
}

/** As the grant's own limits would have it: which they are stands in the answer. */
function requestOf(grant: Grant, action: Capability, target: TerminalTuple): AccessRequest {
  if (action !== 'terminal.signal') return { action, target };
  const { signals } = grant.constraints;
  const signal = signals?.find((one) => one !== 'SIGKILL') ?? signals?.[0];
  return { action, target, ...(signal && { signal }) };
}

function ceilingOf({ ceiling }: WrittenToken): Ceiling | undefined {
  return (
    ceiling && {
      owners: ceiling.owners.filter(isSelector),
      actions: ceiling.actions.filter(isCapability),
    }
  );
}

function decide(
  action: Capability,
  target: TerminalTuple,
  { token, grants }: Candidate,
  prevented: Holder['prevented'],
  judge: Judge | undefined,
): Holder {
  const { principal, actors = [], exp, peer, cnf } = token;
  let last: Holder | undefined;
  for (const { grant, hash } of grants) {
    const judged = judge?.({
      principal: {
        issuer: principal.iss,
        subject: principal.sub,
        clientId: principal.client_id ?? '',
        actors,
      },
      access: requestOf(grant, action, target),
      peer: { address: peer?.address ?? '', provesPossession: cnf !== undefined },
    });
    const { iss, sub, jti, client_id } = principal;
    const why = prevented ?? (judged?.permit === false ? 'policy' : undefined);
    last = {
      iss,
      sub,
      jti,
      ...(client_id !== undefined && { client_id }),
      actors,
      grant: grant.id,
      grant_hash: hash,
      constraints: grant.constraints,
      exp,
      policies: judged?.policyIds ?? [],
      ...(why && { prevented: why }),
    };
    if (why === undefined) break;
  }
  if (last === undefined) throw new TypeError('a candidate has a grant');
  return last;
}
