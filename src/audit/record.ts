/** One record of the trail: what it says, and how it is written for those who read it later. */
import type { Capability } from '../core/capability.js';
import type { ErrorReason } from '../core/errors.js';
import type { Grant, GrantDecision } from '../core/grant.js';

/**
 * Who asked for what and how it was decided, before any effect. Never holds a token, input bytes or
 * values of the environment.
 */
export interface IntentRecord {
  /** Unique; the caller is told it and the outcome names it. */
  readonly decisionId: string;
  /** Milliseconds since the Unix epoch. */
  readonly timeMs: number;
  /** Absent while nobody has been authenticated. */
  readonly principal?: AuditPrincipal | undefined;
  readonly peer: AuditPeer;
  /** Full name of the method, such as `grantty.v1.TerminalService/Write`. */
  readonly rpc: string;
  /** What of a stream was decided; absent for unary calls. */
  readonly frame?:
    | 'open'
    | 'input'
    | 'resize'
    | 'signal'
    | 'reauthenticate'
    | 'expiry'
    | 'close'
    | undefined;
  /** Absent when the call needs no more than a token. */
  readonly action?: Capability | undefined;
  /** As far as it is known. */
  readonly target?: AuditTarget | undefined;
  readonly decision: 'allow' | 'deny';
  /** Why it was denied. */
  readonly reason?: ErrorReason | undefined;
  /** The grant that covered it. */
  readonly grantId?: string | undefined;
  /** Grants that did not, and why. */
  readonly considered: GrantDecision['considered'];
  readonly policy?: { readonly hash: string; readonly ids: readonly string[] } | undefined;
  readonly inputBytes?: number | undefined;
}

/** Never changes: its text is put together once. */
export interface AuditPrincipal {
  readonly issuer: string;
  readonly subject: string;
  readonly clientId: string;
  readonly jti: string;
  readonly keyId: string;
  /** The latest first. */
  readonly actors: readonly string[];
  /** Tokens that this one descends from, the root first. */
  readonly lineage: readonly TokenName[];
  /** Put on record once in each file, so that it can be told later who could have done what. */
  readonly token?: AuditToken;
}

export interface TokenName {
  readonly issuer: string;
  readonly jti: string;
}

/** What a token allows, and when. Times are seconds since the Unix epoch. */
export interface AuditToken {
  /** SHA-256 of the token, hex. */
  readonly hash: string;
  readonly issuedAt: number;
  readonly notBefore: number;
  readonly expiresAt: number;
  readonly grants: readonly Grant[];
  readonly cnf?: { readonly x5tS256: string };
}

export interface AuditPeer {
  readonly address: string;
  /** `x5t#S256` of the client certificate. */
  readonly certificate?: string | undefined;
}

export interface AuditTarget {
  readonly owner: string;
  readonly id: string;
  /** Absent when no such terminal is stored. */
  readonly agent?: string;
  readonly session?: string;
}

/** What became of an allowed intent. */
export interface OutcomeRecord {
  readonly decisionId: string;
  readonly timeMs: number;
  /** Name of the gRPC status, such as `OK`. */
  readonly status: string;
  readonly reason?: ErrorReason;
  /** Sequence numbers of events that the effect or the stream spans. */
  readonly firstSeq?: number;
  readonly lastSeq?: number;
  /** Bytes of input taken and of output delivered. */
  readonly inputBytes?: number;
  readonly outputBytes?: number;
}

/**
 * An intent as it is written. Member by member, so that nothing else of an object can slip in.
 * `grantHash` names the text of the covering grant.
 */
export function writeIntent(record: IntentRecord, grantHash?: string): Written {
  const { principal, peer, target, policy } = record;
  return {
    record: 'intent',
    time_ms: record.timeMs,
    decision_id: record.decisionId,
    principal: principal && writePrincipal(principal),
    actors: principal?.actors,
    lineage: principal?.lineage.map(writeTokenName),
    peer: writePeer(peer),
    rpc: record.rpc,
    frame: record.frame,
    action: record.action,
    target: target && writeTarget(target),
    decision: record.decision,
    reason: record.reason,
    grant: record.grantId,
    grant_hash: grantHash,
    considered: record.considered.map(writeConsidered),
    policy: policy && { hash: policy.hash, ids: policy.ids },
    input_bytes: record.inputBytes,
  };
}

/**
 * The text of `writeIntent`, to the byte, at a fraction of the cost: one is made for every decision,
 * and what it says of a principal is put together once.
 */
export function intentText(record: IntentRecord, grantHash?: string): string {
  const { principal, peer, target, considered, policy } = record;
  return (
    `{"record":"intent","time_ms":${record.timeMs},"decision_id":${text(record.decisionId)}` +
    (principal === undefined ? '' : principalText(principal)) +
    `,"peer":{"address":${text(peer.address)}${member('certificate', peer.certificate)}}` +
    `,"rpc":${text(record.rpc)}` +
    member('frame', record.frame) +
    member('action', record.action) +
    (target === undefined ? '' : `,"target":${targetText(target)}`) +
    `,"decision":"${record.decision}"` +
    member('reason', record.reason) +
    member('grant', record.grantId) +
    member('grant_hash', grantHash) +
    `,"considered":${considered.length === 0 ? '[]' : json(considered.map(writeConsidered))}` +
    (policy === undefined
      ? ''
      : `,"policy":{"hash":${text(policy.hash)},"ids":[${policy.ids.map(text).join(',')}]}`) +
    `${member('input_bytes', record.inputBytes)}}`
  );
}

const principalTexts = new WeakMap<AuditPrincipal, string>();

function principalText(principal: AuditPrincipal): string {
  let written = principalTexts.get(principal);
  if (written === undefined) {
    const { actors, lineage } = principal;
    written =
      `,"principal":${json(writePrincipal(principal))}` +
      `,"actors":${json(actors)},"lineage":${json(lineage.map(writeTokenName))}`;
    principalTexts.set(principal, written);
  }
  return written;
}

function targetText({ owner, agent, session, id }: AuditTarget): string {
  const names = member('agent', agent) + member('session', session);
  return `{"owner":${text(owner)}${names},"terminal":${text(id)}}`;
}

function json(value: unknown): string {
  return JSON.stringify(value);
}

/** Printable ASCII but for what JSON escapes of it: almost every name, id and hash. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** As JSON.stringify writes it; to see that there is nothing to escape takes less than to look for it. */
function text(value: string): string {
  return PLAIN.test(value) ? `"${value}"` : JSON.stringify(value);
}

function member(name: string, value: string | number | undefined): string {
  if (value === undefined) return '';
  return `,"${name}":${typeof value === 'string' ? text(value) : json(value)}`;
}

/** An outcome as it is written. */
export function writeOutcome(record: OutcomeRecord): Written {
  return {
    record: 'outcome',
    time_ms: record.timeMs,
    decision_id: record.decisionId,
    status: record.status,
    reason: record.reason,
    first_seq: record.firstSeq,
    last_seq: record.lastSeq,
    input_bytes: record.inputBytes,
    output_bytes: record.outputBytes,
  };
}

/** The text of `writeOutcome`, to the byte. */
export function outcomeText(record: OutcomeRecord): string {
  return (
    `{"record":"outcome","time_ms":${record.timeMs},"decision_id":${text(record.decisionId)}` +
    `,"status":${text(record.status)}` +
    member('reason', record.reason) +
    member('first_seq', record.firstSeq) +
    member('last_seq', record.lastSeq) +
    member('input_bytes', record.inputBytes) +
    `${member('output_bytes', record.outputBytes)}}`
  );
}

function writeConsidered({ grantId, why }: GrantDecision['considered'][number]) {
  return { grant: grantId, why };
}

/** A record as JSON has it: `record`, its kind, comes first. */
export type Written = Readonly<Record<string, unknown>> & { readonly record: string };

export function writePrincipal({ issuer, subject, clientId, jti, keyId }: AuditPrincipal) {
  return { iss: issuer, sub: subject, client_id: clientId, jti, kid: keyId };
}

export function writeTokenName({ issuer, jti }: TokenName) {
  return { iss: issuer, jti };
}

export function writePeer({ address, certificate }: AuditPeer) {
  return { address, certificate };
}

export function writeTarget({ owner, agent, session, id }: AuditTarget) {
  return { owner, agent, session, terminal: id };
}
