/** What a caller sees of many terminals: the decision of lists, taken item by item. */
import type { VerifiedToken } from '../auth/token.js';
import type { Capability } from '../core/capability.js';
import { findGrant } from '../core/grant.js';
import type { TerminalTuple } from '../core/names.js';
import { authenticate, endOf } from './authentication.js';
import { askPolicy } from './authorize.js';
import { DecisionDraft } from './decisionDraft.js';
import type { Caller, Gate } from './gate.js';
import { seconds, tupleOf } from './resolveTarget.js';

/** What a caller sees of many terminals. */
export interface Sight {
  readonly decisionId: string;
  readonly token: VerifiedToken;
  /** When the caller's authority ends, milliseconds since the Unix epoch. */
  readonly notAfter: number;
  /** When less may be seen, by the end of a grant; the same unit. */
  readonly narrowsAt: number;
  /** False when no grant holds the action: then there is nothing to look for. */
  readonly reachesAnything: boolean;
  sees(terminal: TerminalTuple): boolean;
}

/** The same for lists: one record for the call, and grants and policy asked for each item. */
export async function authorizeItems(
  gate: Gate,
  caller: Caller,
  action: Capability,
): Promise<Sight> {
  const draft = new DecisionDraft(gate, { ...caller, action });
  try {
    const token = await authenticate(gate, caller);
    draft.token = token;
    await draft.allow();
    const grants = token.grants.filter((grant) => grant.actions.includes(action));
    const ends = grants.map(({ constraints }) => (constraints.expiresAt ?? Infinity) * 1000);
    return {
      decisionId: draft.id,
      token,
      notAfter: endOf(gate, token, caller.peer),
      narrowsAt: Math.min(...ends.filter((end) => end > gate.clock.now())),
      reachesAnything: grants.length > 0,
      sees: (terminal) => {
        const access = { action, target: tupleOf(terminal) };
        return (
          findGrant(grants, access, seconds(gate)) !== undefined &&
          isPermitted(gate, caller, token, access)
        );
      },
    };
  } catch (error) {
    throw await draft.deny(error);
  }
}

/** What policy says of one item. */
export function isPermitted(...asked: Parameters<typeof askPolicy>): boolean {
  try {
    askPolicy(...asked);
    return true;
  } catch {
    return false;
  }
}
