/** Grants: what a token lets its bearer do, and whether one of them covers a request. */
import type { AccessRequest } from './access.js';
import { type Capability, capabilities } from './capability.js';
import { isOver, violatedConstraint } from './constraintCheck.js';
import {
  type ConstraintName,
  type Constraints,
  parseConstraints,
  writeConstraints,
} from './constraints.js';
import { counted } from './counted.js';
import { fieldInvalid } from './errors.js';
import { asArray, asInteger, asObjectOf, asText } from './jsonShape.js';
import type { Name } from './names.js';
import { type GrantResource, parseResource, reaches } from './resource.js';
import { exactName, type Selector, selects, selectsOwner } from './selector.js';

/** `type` of an `authorization_details` object (RFC 9396) that is a grant of ours. */
export const GRANT_TYPE = 'urn:grantty:terminal:v1';

/** Grants of one token. */
export const MAX_GRANTS = 32;

const MAX_GRANT_ID_LENGTH = 64;

/** What the grants of an issuer may reach at most, whatever its tokens say. */
export interface Ceiling {
  readonly owners: readonly Selector[];
  readonly actions: readonly Capability[];
}

/** Plain data, checked and in normalised form. */
export interface Grant {
  /** Unique among the grants of its token. */
  readonly id: string;
  /** In the order of `capabilities`, none twice. */
  readonly actions: readonly Capability[];
  readonly resource: GrantResource;
  readonly constraints: Constraints;
  /** The grants that it is a part of, the root first, its parent last; absent unless delegated. */
  readonly from?: readonly GrantAncestor[];
  /** Of the issuer, or of that of the root; put there by whoever verified the token. */
  readonly ceiling?: Ceiling;
}

/** A grant further up, with those of its limits that all its parts share. */
export interface GrantAncestor {
  readonly id: string;
  readonly maxTerminals?: number;
  readonly writeBytesPerSecond?: number;
}

/** Why a grant does not cover a request: the first of these, in this order, that fails. */
export type Uncovered = 'action' | 'resource' | 'ceiling' | ConstraintName;

export type Coverage =
  | { readonly covered: true }
  | { readonly covered: false; readonly why: Uncovered };

/** The outcome over all grants of a token. */
export interface GrantDecision {
  /** The one that covers the request by itself; absent when there is none. */
  readonly grant?: Grant;
  /** Grants looked at before it, or all of them, and why each failed. */
  readonly considered: readonly { readonly grantId: string; readonly why: Uncovered }[];
  /** What a caller without such a grant should ask for. */
  readonly requiredAction: Capability;
}

/**
 * Reads `authorization_details`: every object a grant, every member known, all of it well-typed.
 * `depth` is how often the token was delegated: each grant then names as many above it.
 * @throws FIELD_INVALID that names the path, never the value
 */
export function parseGrants(
  details: unknown,
  depth = 0,
  field = 'authorization_details',
): readonly Grant[] {
  const written = asArray(field, details);
  if (written.length > MAX_GRANTS) throw fieldInvalid(field, `holds over ${MAX_GRANTS} grants`);
  const grants = written.map((value, index) => parseGrant(`${field}[${index}]`, value, depth));
  if (new Set(grants.map((grant) => grant.id)).size < grants.length) {
    throw fieldInvalid(field, 'has two grants of the same id');
  }
  return grants;
}

/** The grants as tokens write them; parsing that gives equal grants, but for their ceilings. */
export function writeGrants(
  grants: readonly Grant[],
): readonly Readonly<Record<string, unknown>>[] {
  return grants.map(({ id, actions, resource, constraints, from }) => ({
    type: GRANT_TYPE,
    id,
    actions,
    resource,
    constraints: writeConstraints(constraints),
    ...(from && { from: from.map(writeAncestor) }),
  }));
}

/** What a part of the grant says of it. */
export function ancestorOf({ id, constraints }: Grant): GrantAncestor {
  const { maxTerminals, writeBytesPerSecond } = constraints;
  return {
    id,
    ...(maxTerminals !== undefined && { maxTerminals }),
    ...(writeBytesPerSecond !== undefined && { writeBytesPerSecond }),
  };
}

function writeAncestor({ id, maxTerminals, writeBytesPerSecond }: GrantAncestor) {
  return {
    id,
    ...(maxTerminals !== undefined && { max_terminals: maxTerminals }),
    ...(writeBytesPerSecond !== undefined && { write_bytes_per_second: writeBytesPerSecond }),
  };
}

/** @throws FIELD_INVALID */
export function parseActions(field: string, value: unknown): readonly Capability[] {
  const written = asArray(field, value);
  if (!written.every((item) => (capabilities as readonly unknown[]).includes(item))) {
    throw fieldInvalid(field, `has an unknown action; known are ${capabilities.join(', ')}`);
  }
  return capabilities.filter((capability) => written.includes(capability));
}

/**
 * Whether this grant, by itself, covers all of the request. `nowSeconds` is the time since the Unix
 * epoch. Signal bytes count against the grant here; `considerGrants` knows when they are excused.
 */
export function coverage(grant: Grant, request: AccessRequest, nowSeconds: number): Coverage {
  const why = uncovered(grant, request, nowSeconds);
  return why === undefined ? { covered: true } : { covered: false, why };
}

/** The first grant that covers the request by itself. */
export function findGrant(
  grants: readonly Grant[],
  request: AccessRequest,
  nowSeconds: number,
): Grant | undefined {
  const asked = excuseSignalBytes(grants, request, nowSeconds);
  return grants.find((grant) => uncovered(grant, asked, nowSeconds) === undefined);
}

/** As `findGrant`, and says what was looked at. */
export function considerGrants(
  grants: readonly Grant[],
  request: AccessRequest,
  nowSeconds: number,
): GrantDecision {
  const asked = excuseSignalBytes(grants, request, nowSeconds);
  const considered: { grantId: string; why: Uncovered }[] = [];
  for (const grant of grants) {
    const why = uncovered(grant, asked, nowSeconds);
    if (why === undefined) return { grant, considered, requiredAction: request.action };
    considered.push({ grantId: grant.id, why });
  }
  return { considered, requiredAction: lackingAction(grants, asked, considered) };
}

/** Whether some grant covers the ref whatever agent and session it turns out to have. */
export function seesWhatever(
  grants: readonly Grant[],
  action: Capability,
  owner: Name,
  id: Name,
  nowSeconds: number,
): boolean {
  return grants.some(
    ({ actions, resource, constraints, ceiling }) =>
      actions.includes(action) &&
      resource.agent === '*' &&
      resource.session === '*' &&
      selectsOwner(resource.owner, owner) &&
      selects(resource.terminal, id) &&
      isBelow(ceiling, [action], owner) &&
      !isOver(constraints, nowSeconds),
  );
}

/** Whether some grant covers everything of the agent, whatever its sessions and terminals. */
export function coversAgent(
  grants: readonly Grant[],
  action: Capability,
  owner: Name,
  agent: Name,
  nowSeconds: number,
): boolean {
  return grants.some(
    ({ actions, resource, constraints, ceiling }) =>
      actions.includes(action) &&
      resource.session === '*' &&
      resource.terminal === '*' &&
      selectsOwner(resource.owner, owner) &&
      selects(resource.agent, agent) &&
      isBelow(ceiling, [action], owner) &&
      !isOver(constraints, nowSeconds),
  );
}

/** The one owner that the grants spell out; undefined when they spell out none or several. */
export function soleOwner(grants: readonly Grant[]): Name | undefined {
  const owners = new Set(grants.map((grant) => exactName(grant.resource.owner)));
  owners.delete(undefined);
  return owners.size === 1 ? [...owners][0] : undefined;
}

/** All that one grant must hold: SIGKILL is as good as a kill, so it needs that action too. */
export function requiredActions(request: AccessRequest): readonly Capability[] {
  const { action, also, signal } = request;
  if (also === undefined && signal !== 'SIGKILL') return [action];
  return [action, ...(also ?? []), ...(signal === 'SIGKILL' ? (['terminal.kill'] as const) : [])];
}

function uncovered(
  grant: Grant,
  request: AccessRequest,
  nowSeconds: number,
): Uncovered | undefined {
  const { constraints, resource } = grant;
  const { target } = request;
  const actions = requiredActions(request);
  if (!actions.every((required) => grant.actions.includes(required))) return 'action';
  if (!reaches(resource, target)) return 'resource';
  if (!isBelow(grant.ceiling, actions, target.owner)) return 'ceiling';
  return violatedConstraint(constraints, request, nowSeconds);
}

function isBelow(
  ceiling: Ceiling | undefined,
  actions: readonly Capability[],
  owner: Name,
): boolean {
  if (ceiling === undefined) return true;
  return (
    actions.every((action) => ceiling.actions.includes(action)) &&
    ceiling.owners.some((selector) => selectsOwner(selector, owner))
  );
}

/**
 * The request without its signal bytes when the caller might send each of those signals to the same
 * terminal anyway. The only rule that looks at a second grant: it adds nothing that the caller
 * could not do by the other grant alone.
 */
function excuseSignalBytes(
  grants: readonly Grant[],
  request: AccessRequest,
  nowSeconds: number,
): AccessRequest {
  const { signalBytes, target } = request;
  if (!signalBytes?.length) return request;
  const excused = signalBytes.every((signal) => {
    const sent: AccessRequest = { action: 'terminal.signal', target, signal };
    return grants.some((grant) => uncovered(grant, sent, nowSeconds) === undefined);
  });
  return excused ? { ...request, signalBytes: [] } : request;
}

/** The action that no grant holds for the terminal, or the one asked for when constraints refuse. */
function lackingAction(
  grants: readonly Grant[],
  request: AccessRequest,
  considered: GrantDecision['considered'],
): Capability {
  if (considered.some(({ why }) => why === 'signal_bytes')) return 'terminal.signal';
  const held = new Set(
    grants.flatMap((grant) => (reaches(grant.resource, request.target) ? grant.actions : [])),
  );
  return requiredActions(request).find((action) => !held.has(action)) ?? request.action;
}

function parseGrant(field: string, value: unknown, depth: number): Grant {
  const members = ['type', 'id', 'actions', 'resource', 'constraints'];
  const written = asObjectOf(field, value, depth > 0 ? [...members, 'from'] : members);
  if (written.type !== GRANT_TYPE) throw fieldInvalid(`${field}.type`, `must be ${GRANT_TYPE}`);
  return {
    id: asText(`${field}.id`, written.id, MAX_GRANT_ID_LENGTH),
    actions: parseActions(`${field}.actions`, written.actions),
    resource: parseResource(`${field}.resource`, written.resource),
    constraints: parseConstraints(`${field}.constraints`, written.constraints),
    ...(depth > 0 && { from: parseAncestors(`${field}.from`, written.from, depth) }),
  };
}

function parseAncestors(field: string, value: unknown, depth: number): readonly GrantAncestor[] {
  const written = asArray(field, value);
  if (written.length !== depth) throw fieldInvalid(field, `must name ${counted(depth, 'grant')}`);
  return written.map((item, index) => {
    const path = `${field}[${index}]`;
    const members = asObjectOf(path, item, ['id', 'max_terminals', 'write_bytes_per_second']);
    const limit = (name: string, min: number) =>
      Object.hasOwn(members, name) ? asInteger(`${path}.${name}`, members[name], min) : undefined;
    const maxTerminals = limit('max_terminals', 0);
    const writeBytesPerSecond = limit('write_bytes_per_second', 1);
    return {
      id: asText(`${path}.id`, members.id, MAX_GRANT_ID_LENGTH),
      ...(maxTerminals !== undefined && { maxTerminals }),
      ...(writeBytesPerSecond !== undefined && { writeBytesPerSecond }),
    };
  });
}
