/** The operator's word after the grants': a policy may forbid what a grant covers, never allow more. */
import type { AccessRequest } from '../core/access.js';

export interface PolicyRequest {
  readonly principal: PolicyPrincipal;
  readonly access: AccessRequest;
  readonly peer: PolicyPeer;
}

/** Never changes: what is made of it is made once. */
export interface PolicyPrincipal {
  readonly issuer: string;
  readonly subject: string;
  readonly clientId: string;
  /** The latest first. */
  readonly actors: readonly string[];
}

export interface PolicyPeer {
  /** IP address without port, or `unix`. */
  readonly address: string;
  /** The token is bound to the certificate that the connection has shown. */
  readonly provesPossession: boolean;
}

export interface PolicyDecision {
  readonly permit: boolean;
  /** Ids of the policies that decided. */
  readonly policyIds: readonly string[];
  /** Names the set of policies that was asked. */
  readonly hash: string;
}

/** A policy reads no clock, so one answer holds for as long as `hash` stays. */
export interface Policy {
  readonly hash: string;
  /** Must not throw for any request; a caller treats a throw as a denial. */
  decide(request: PolicyRequest): PolicyDecision;
}

const permitted: PolicyDecision = { permit: true, policyIds: [], hash: 'grants-alone' };

/** Permits whatever a grant covers: for operators without policies of their own. */
export const grantsAlone: Policy = { hash: permitted.hash, decide: () => permitted };
