/**
 * Whether one grant is a part of another: whatever it lets its bearer do, the other does too. Both
 * are in normalised form, where undefined allows everything and an empty list nothing.
 */
import { isSameArgv } from './constraintCheck.js';
import type { ConstraintName, Constraints } from './constraints.js';
import { isUnder } from './directory.js';
import { isWithinEnvAllow } from './envNames.js';
import type { Grant } from './grant.js';
import { type GrantResource, reachesBeyond } from './resource.js';

/** What of a grant goes beyond another: the first of these, in this order. */
export type Widening = 'action' | `resource.${keyof GrantResource}` | ConstraintName;

type Part = Pick<Grant, 'actions' | 'resource' | 'constraints'>;

/**
 * What of `part` goes beyond `whole`; undefined when it is a part of it. What an issuer's ceiling
 * takes away is not looked at: it is taken from the parts as well.
 */
export function widening(part: Part, whole: Part): Widening | undefined {
  if (!part.actions.every((action) => whole.actions.includes(action))) return 'action';
  const beyond = reachesBeyond(part.resource, whole.resource);
  if (beyond !== undefined) return `resource.${beyond}`;
  return widerConstraint(part.constraints, whole.constraints);
}

function widerConstraint(part: Constraints, whole: Constraints): ConstraintName | undefined {
  if (!isAtMost(part.expiresAt, whole.expiresAt)) return 'expires_at';
  if (!isAtMost(part.maxTerminals, whole.maxTerminals)) return 'max_terminals';
  if (!isAmong(part.commands, whole.commands, isSameArgv)) return 'commands';
  if (!isAmong(part.cwdUnder, whole.cwdUnder, (path, root) => isUnder(path, [root]))) {
    return 'cwd_under';
  }
  if (!part.envAllow.every((pattern) => isWithinEnvAllow(pattern, whole.envAllow))) {
    return 'env_allow';
  }
  if (!isAmong(part.signals, whole.signals, (a, b) => a === b)) return 'signals';
  if (part.signalBytes === 'allow' && whole.signalBytes === 'refuse') return 'signal_bytes';
  if (!isAtMost(part.writeBytesPerSecond, whole.writeBytesPerSecond)) {
    return 'write_bytes_per_second';
  }
  return undefined;
}

/** Undefined is more than any number. */
function isAtMost(part: number | undefined, whole: number | undefined): boolean {
  return whole === undefined || (part !== undefined && part <= whole);
}

/** Whether each item of one list is covered by an item of the other; undefined covers every list. */
function isAmong<T>(
  part: readonly T[] | undefined,
  whole: readonly T[] | undefined,
  covers: (item: T, by: T) => boolean,
): boolean {
  if (whole === undefined) return true;
  return part?.every((item) => whole.some((other) => covers(item, other))) ?? false;
}
