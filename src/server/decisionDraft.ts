/** The audit record of one decision while it is being made. */
import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { AuditPrincipal, IntentRecord } from '../audit/record.js';
import type { AuditTrail } from '../audit/trail.js';
import type { PolicyDecision } from '../auth/policy.js';
import type { VerifiedToken } from '../auth/token.js';
import type { Capability } from '../core/capability.js';
import { GranttyError } from '../core/errors.js';
import type { Grant, GrantDecision } from '../core/grant.js';
import type { Clock } from './clock.js';
import type { Peer } from './peer.js';

export interface Recorder {
  readonly audit: AuditTrail;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface DraftStart {
  readonly peer: Peer;
  /** `/package.Service/Method`. */
  readonly path: string;
  readonly frame?: NonNullable<IntentRecord['frame']> | undefined;
  readonly action?: Capability | undefined;
  readonly inputBytes?: number | undefined;
}

/** Filled in step by step; whatever is known when the decision falls goes on record. */
export class DecisionDraft {
  readonly id = randomUUID();
  token: VerifiedToken | undefined;
  target: IntentRecord['target'];
  considered: GrantDecision['considered'] = [];
  policy: PolicyDecision | undefined;

  constructor(
    private readonly recorder: Recorder,
    private readonly start: DraftStart,
  ) {}

  /** Resolves when the permission is on record. @throws AUDIT_UNAVAILABLE */
  allow(grant?: Grant): Promise<unknown> {
    return this.recorder.audit.intent(this.#record('allow', undefined, grant?.id));
  }

  /** Records the refusal and returns what to throw: `error`, told which decision it was. */
  async deny(error: unknown): Promise<unknown> {
    if (!(error instanceof GranttyError)) return error;
    let decisionId: string = this.id;
    try {
      // Of many denials alike one is written; that is the one which all of their callers can ask about.
      decisionId = await this.recorder.audit.intent(this.#record('deny', error.reason));
    } catch (failure) {
      // It stays a denial; that it is missing in the trail must be seen somewhere.
      this.recorder.logger.error({ err: failure, decisionId: this.id }, 'denial not recorded');
    }
    return withMetadata(error, { decision_id: decisionId });
  }

  /** In one piece: one is made for every decision. */
  #record(
    decision: IntentRecord['decision'],
    reason?: IntentRecord['reason'],
    grantId?: string,
  ): IntentRecord {
    const { peer, path, frame, action, inputBytes } = this.start;
    const { token, policy } = this;
    return {
      decisionId: this.id,
      timeMs: this.recorder.clock.now(),
      principal: token && principalOf(token),
      peer: { address: peer.address, certificate: peer.certificate?.thumbprint },
      rpc: path.slice(1),
      frame,
      action,
      target: this.target,
      decision,
      reason,
      grantId,
      considered: this.considered,
      policy: policy && { hash: policy.hash, ids: policy.policyIds },
      inputBytes,
    };
  }
}

const principals = new WeakMap<VerifiedToken, AuditPrincipal>();

/** One for each token, so that its text on record is made once. */
function principalOf(token: VerifiedToken): AuditPrincipal {
  let principal = principals.get(token);
  if (principal === undefined) {
    const { issuer, subject, clientId, jti, keyId, actors, lineage } = token;
    principal = { issuer, subject, clientId, jti, keyId, actors, lineage, token };
    principals.set(token, principal);
  }
  return principal;
}

/** The error with further facts for programs; anything but a GranttyError as it is. */
export function withMetadata(error: unknown, metadata: Readonly<Record<string, string>>): unknown {
  if (!(error instanceof GranttyError)) return error;
  return new GranttyError(error.reason, error.message, {
    metadata: { ...error.metadata, ...metadata },
    violations: error.violations,
    ...(error.retryAfterMs !== undefined && { retryAfterMs: error.retryAfterMs }),
    cause: error.cause,
  });
}
