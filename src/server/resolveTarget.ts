/** What a request is about: the tuple as stored, or for a create the one to be stored. */
import type { VerifiedToken } from '../auth/token.js';
import type { Capability } from '../core/capability.js';
import { fieldInvalid, GranttyError } from '../core/errors.js';
import { seesWhatever, soleOwner } from '../core/grant.js';
import { type Name, parseName, type TerminalTuple } from '../core/names.js';
import type { TerminalSnapshot } from '../supervisor/api.js';
import type { DecisionDraft } from './decisionDraft.js';
import { notFound } from './errors.js';
import type { Ask, Gate, Target } from './gate.js';

interface Resolved {
  readonly isResolved: true;
  readonly target: TerminalTuple;
  readonly terminal: TerminalSnapshot | undefined;
}

/** A terminal that may exist: whether it does is for the supervisor to say, and then for `found`. */
interface Unresolved {
  readonly isResolved: false;
  readonly key: { readonly owner: Name; readonly id: Name };
}

/** What it is about, as far as that is known before the supervisor is asked. @throws FIELD_INVALID, GRANT_MISSING */
export function placeOf(
  token: VerifiedToken,
  { action, target: wanted }: Ask,
  draft: DecisionDraft,
): Resolved | Unresolved {
  if (wanted.kind === 'known') return resolved(wanted.terminal, draft);
  const { owner, id, agent, session } = namesOf(token, action, wanted);
  if (agent && session) {
    const target = { owner, agent, session, id };
    draft.target = target;
    return { isResolved: true, target, terminal: undefined };
  }
  draft.target = { owner, id };
  return { isResolved: false, key: { owner, id } };
}

/** What it is about, as stored. @throws TERMINAL_NOT_FOUND, GRANT_MISSING */
export function found(
  gate: Gate,
  token: VerifiedToken,
  action: Capability,
  { key: { owner, id } }: Unresolved,
  terminal: TerminalSnapshot | undefined,
  draft: DecisionDraft,
): Resolved {
  if (terminal !== undefined) return resolved(terminal, draft);
  if (seesWhatever(token.grants, action, owner, id, seconds(gate))) {
    throw notFound();
  }
  throw grantMissing(action);
}

function resolved(terminal: TerminalSnapshot, draft: DecisionDraft): Resolved {
  const target = tupleOf(terminal.record);
  draft.target = target;
  return { isResolved: true, target, terminal };
}

interface Names {
  readonly owner: Name;
  readonly id: Name;
  readonly agent?: Name;
  readonly session?: Name;
}

/** What is no name names nothing; only who could act on something is told what is wrong with it. */
function namesOf(
  token: VerifiedToken,
  action: Capability,
  wanted: Exclude<Target, { kind: 'known' }>,
): Names {
  try {
    const owner = wanted.owner === undefined ? ownerOf(token) : parseName('owner', wanted.owner);
    if (wanted.kind === 'stored') return { owner, id: parseName('id', wanted.id) };
    return {
      owner,
      agent: parseName('agent', wanted.agent),
      session: parseName('session', wanted.session),
      id: parseName('id', wanted.id),
    };
  } catch (error) {
    if (token.grants.some((grant) => grant.actions.includes(action))) throw error;
    throw grantMissing(action);
  }
}

/** Of a request that names none. @throws FIELD_INVALID */
export function ownerOf(token: VerifiedToken): Name {
  const owner = soleOwner(token.grants);
  if (owner !== undefined) return owner;
  throw fieldInvalid('owner', "is needed: the token's grants do not name one exact owner");
}

/**
 * The same for a terminal that is out of reach and for one that does not exist: nothing here may
 * depend on what is stored.
 */
export function grantMissing(requiredAction: Capability): GranttyError {
  return new GranttyError('GRANT_MISSING', `no grant of the token covers this: ${requiredAction}`, {
    metadata: { required_action: requiredAction },
  });
}

/** Since the Unix epoch, whole. */
export function seconds(gate: Gate): number {
  return Math.floor(gate.clock.now() / 1000);
}

/** The tuple alone of what holds more. */
export function tupleOf({ owner, id, agent, session }: TerminalTuple): TerminalTuple {
  return { owner, id, agent, session };
}
