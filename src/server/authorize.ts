/**
 * The one decision behind every RPC and every frame. Whoever holds a `Permit` got it here; nothing
 * else in the server decides anything.
 */
import { inputCharges } from '../auth/budgets.js';
import type { PolicyPrincipal } from '../auth/policy.js';
import { provesPossession } from '../auth/proof.js';
import type { VerifiedToken } from '../auth/token.js';
import type { AccessRequest } from '../core/access.js';
import { counted } from '../core/counted.js';
import { type ErrorReason, GranttyError } from '../core/errors.js';
import { considerGrants, type Grant } from '../core/grant.js';
import type { TerminalTuple } from '../core/names.js';
import type { TerminalSnapshot } from '../supervisor/api.js';
import { authenticate, endOf } from './authentication.js';
import { DecisionDraft } from './decisionDraft.js';
import type { Ask, Caller, Gate, Permit } from './gate.js';
import { leaseId } from './leaseBook.js';
import { found, grantMissing, placeOf, seconds } from './resolveTarget.js';

/**
 * Decides, in this order: who asks; what it is about, as stored; whether one grant covers it, its
 * constraints included; whether policy permits it; and puts it on record. Only then may the caller
 * dispatch.
 * @throws GranttyError that says why not, with its `decision_id`
 */
export function authorize(gate: Gate, caller: Caller, ask: Ask): Promise<Permit> {
  return decide(gate, caller, ask, draftOf(gate, caller, ask));
}

/** Waits for nothing that is known already: each promise is work for every call. */
async function decide(gate: Gate, caller: Caller, ask: Ask, draft: DecisionDraft): Promise<Permit> {
  try {
    const known = authenticate(gate, caller);
    const token = known instanceof Promise ? await known : known;
    draft.token = token;

    const place = placeOf(token, ask, draft);
    const { target, terminal } = place.isResolved
      ? place
      : found(gate, token, ask.action, place, await gate.supervisor.get(place.key), draft);

    const covered = cover(gate, token, ask, target, terminal, draft);
    const { grant, request } = covered instanceof Promise ? await covered : covered;

    askPolicy(gate, caller, token, request, draft);

    chargeInput(gate, token, grant, ask.inputBytes);

    await draft.allow(grant);

    return {
      decisionId: draft.id,
      token,
      grant,
      target,
      key: { owner: target.owner, id: target.id, ...(terminal && { uid: terminal.record.uid }) },
      ...(terminal && { terminal }),
      ...(request.launch && { launch: request.launch }),
      lease: { id: leaseId(token), notAfter: endOfPermit(gate, caller, token, grant) },
    };
  } catch (error) {
    throw await draft.deny(error);
  }
}

function draftOf(gate: Gate, caller: Caller, { action, inputBytes }: Ask): DecisionDraft {
  const { peer, path, frame } = caller;
  return new DecisionDraft(gate, { peer, path, frame, action, inputBytes });
}

/** What would be decided. */
export interface Assessment {
  readonly decisionId: string;
  readonly token: VerifiedToken;
  /** Present when it would be allowed. */
  readonly grant?: Grant;
  /** Present when it would not. */
  readonly refusal?: GranttyError;
  /** As far as it is known. */
  readonly target: DecisionDraft['target'];
  readonly considered: DecisionDraft['considered'];
  readonly policy: DecisionDraft['policy'];
}

/** Refusals that are an answer to the question what would be decided. */
const REFUSALS: readonly ErrorReason[] = ['GRANT_MISSING', 'POLICY_DENIED', 'TERMINAL_NOT_FOUND'];

/** Decides as `authorize` does, and tells how it came about. @throws what is no decision */
export async function assess(gate: Gate, caller: Caller, ask: Ask): Promise<Assessment> {
  const draft = draftOf(gate, caller, ask);
  const told = (token: VerifiedToken) => ({
    decisionId: draft.id,
    token,
    target: draft.target,
    considered: draft.considered,
    policy: draft.policy,
  });
  try {
    const { token, grant } = await decide(gate, caller, ask, draft);
    return { ...told(token), grant };
  } catch (refusal) {
    const isRefusal = refusal instanceof GranttyError && REFUSALS.includes(refusal.reason);
    if (draft.token === undefined || !isRefusal) throw refusal;
    return { ...told(draft.token), refusal };
  }
}

/** What was decided about the caller's own authority. */
export interface OwnPermit<T> {
  readonly decisionId: string;
  readonly token: VerifiedToken;
  readonly judged: T;
}

/**
 * For what a token may do with itself: `judge` says what that is, or throws why not. On record either
 * way before anything is done.
 */
export async function authorizeOwn<T>(
  gate: Gate,
  caller: Caller,
  judge: (token: VerifiedToken, decisionId: string) => T,
): Promise<OwnPermit<T>> {
  const draft = new DecisionDraft(gate, caller);
  try {
    const token = await authenticate(gate, caller);
    draft.token = token;
    const judged = judge(token, draft.id);
    await draft.allow();
    return { decisionId: draft.id, token, judged };
  } catch (error) {
    throw await draft.deny(error);
  }
}

/** For what needs a valid token and no more. Only a refusal is put on record. */
export async function admit(gate: Gate, caller: Caller): Promise<VerifiedToken> {
  try {
    return await authenticate(gate, caller);
  } catch (error) {
    throw await new DecisionDraft(gate, caller).deny(error);
  }
}

interface Covered {
  readonly grant: Grant;
  readonly request: AccessRequest;
}

/** Whether one grant covers action, tuple and constraints, all of them. A promise only for a launch. */
function cover(
  gate: Gate,
  token: VerifiedToken,
  { action, also, launch, signal, anySignal, signalBytes, inputBytes }: Ask,
  target: TerminalTuple,
  terminal: TerminalSnapshot | undefined,
  draft: DecisionDraft,
): Covered | Promise<Covered> {
  const consider = (request: AccessRequest): Covered => {
    const decided = considerGrants(token.grants, request, seconds(gate));
    draft.considered = decided.considered;
    if (decided.grant === undefined) throw grantMissing(decided.requiredAction);
    return { grant: decided.grant, request };
  };
  const request: AccessRequest = {
    action,
    target,
    ...(also && { also }),
    ...(signal && { signal }),
    ...(anySignal && { anySignal }),
    ...(signalBytes && { signalBytes }),
    ...(inputBytes !== undefined && { inputBytes }),
  };
  const covered = consider(request);
  if (launch === undefined) return covered;
  return launch(target, terminal).then((found) => consider({ ...request, launch: found }));
}

/** @throws POLICY_DENIED, also when the policy could not be asked */
export function askPolicy(
  gate: Gate,
  { peer }: Caller,
  token: VerifiedToken,
  access: AccessRequest,
  draft?: DecisionDraft,
): void {
  let cause: unknown;
  try {
    const decided = gate.policy.decide({
      principal: principalOf(token),
      access,
      peer: { address: peer.address, provesPossession: provesPossession(token, gate.pop) },
    });
    if (draft) draft.policy = decided;
    if (decided.permit) return;
  } catch (error) {
    cause = error;
  }
  throw new GranttyError('POLICY_DENIED', "the operator's policy forbids this", {
    metadata: { required_action: access.action },
    cause,
  });
}

const principals = new WeakMap<VerifiedToken, PolicyPrincipal>();

/** One for each token, so that what questions say of it is put together once. */
function principalOf(token: VerifiedToken): PolicyPrincipal {
  let principal = principals.get(token);
  if (principal === undefined) {
    const { issuer, subject, clientId, actors } = token;
    principal = { issuer, subject, clientId, actors };
    principals.set(token, principal);
  }
  return principal;
}

/** Charges input to the grant's rate. @throws RATE_LIMITED, and nothing was charged */
export function chargeInput(
  gate: Gate,
  token: VerifiedToken,
  grant: Grant,
  bytes: number | undefined,
): void {
  if (bytes === undefined) return;
  const charges = inputCharges(token, grant);
  const waitMs = charges.length === 0 ? 0 : gate.inputRates.take(charges, bytes);
  if (waitMs === 0) return;
  const limit = Math.min(...charges.map((charge) => charge.limit));
  throw new GranttyError(
    'RATE_LIMITED',
    `the grant allows ${counted(limit, 'byte')} of input a second`,
    {
      retryAfterMs: waitMs,
    },
  );
}

function endOfPermit(
  gate: Gate,
  { peer }: Caller,
  token: VerifiedToken,
  { constraints }: Grant,
): number {
  const end = endOf(gate, token, peer);
  return constraints.expiresAt === undefined ? end : Math.min(end, constraints.expiresAt * 1000);
}
