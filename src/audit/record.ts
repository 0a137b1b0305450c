/** One record of the trail: what it says, and how it is written for those who read it later. */
import type { Capability } from '../core/capability.js';
import type { ErrorReason } from '../core/errors.js';
import type { GrantDecision } from '../core/grant.js';

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
  readonly principal?: AuditPrincipal;
  readonly peer: AuditPeer;
  /** Full name of the method, such as `grantty.v1.TerminalService/Write`. */
  readonly rpc: string;
  /** What of a stream was decided; absent for unary calls. */
  readonly frame?: 'open' | 'input' | 'resize' | 'signal' | 'reauthenticate' | 'expiry' | 'close';
  /** Absent when the call needs no more than a token. */
  readonly action?: Capability;
  /** As far as it is known. */
  readonly target?: AuditTarget;
  readonly decision: 'allow' | 'deny';
  /** Why it was denied. */
  readonly reason?: ErrorReason;
  /** The grant that covered it. */
  readonly grantId?: string;
  /** Grants that did not, and why. */
  readonly considered: GrantDecision['considered'];
  readonly policy?: { readonly hash: string; readonly ids: readonly string[] };
  readonly inputBytes?: number;
}

export interface AuditPrincipal {
  readonly issuer: string;
  readonly subject: string;
  readonly clientId: string;
  readonly jti: string;
  readonly keyId: string;
  /** The latest first. */
  readonly actors: readonly string[];
  /** Tokens that this one descends from, the root first. */
  readonly lineage: readonly { readonly issuer: string; readonly jti: string }[];
}

export interface AuditPeer {
  readonly address: string;
  /** `x5t#S256` of the client certificate. */
  readonly certificate?: string;
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

/** An intent as it is written. Member by member, so that nothing else of an object can slip in. */
export function writeIntent(record: IntentRecord): Readonly<Record<string, unknown>> {
  const { principal, peer, target, policy } = record;
  return {
    record: 'intent',
    decision_id: record.decisionId,
    time_ms: record.timeMs,
    principal: principal && {
      iss: principal.issuer,
      sub: principal.subject,
      client_id: principal.clientId,
      jti: principal.jti,
      kid: principal.keyId,
    },
    actors: principal?.actors,
    lineage: principal?.lineage.map(({ issuer, jti }) => ({ iss: issuer, jti })),
    peer: { address: peer.address, certificate: peer.certificate },
    rpc: record.rpc,
    frame: record.frame,
    action: record.action,
    target: target && {
      owner: target.owner,
      agent: target.agent,
      session: target.session,
      terminal: target.id,
    },
    decision: record.decision,
    reason: record.reason,
    grant: record.grantId,
    considered: record.considered.map(({ grantId, why }) => ({ grant: grantId, why })),
    policy: policy && { hash: policy.hash, ids: policy.ids },
    input_bytes: record.inputBytes,
  };
}

/** An outcome as it is written. */
export function writeOutcome(record: OutcomeRecord): Readonly<Record<string, unknown>> {
  return {
    record: 'outcome',
    decision_id: record.decisionId,
    time_ms: record.timeMs,
    status: record.status,
    reason: record.reason,
    first_seq: record.firstSeq,
    last_seq: record.lastSeq,
    input_bytes: record.inputBytes,
    output_bytes: record.outputBytes,
  };
}
