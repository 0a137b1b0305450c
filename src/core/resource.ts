/** The resource of a grant: four selectors, all of which a terminal must match. */
import { asObjectOf } from './jsonShape.js';
import type { TerminalTuple } from './names.js';
import {
  isWithinOwnerSelector,
  isWithinSelector,
  parseSelector,
  type Selector,
  selects,
  selectsOwner,
} from './selector.js';

export interface GrantResource {
  readonly owner: Selector;
  readonly agent: Selector;
  readonly session: Selector;
  readonly terminal: Selector;
}

/** All four are required. @throws FIELD_INVALID */
export function parseResource(field: string, value: unknown): GrantResource {
  const written = asObjectOf(field, value, ['owner', 'agent', 'session', 'terminal']);
  return {
    owner: parseSelector(`${field}.owner`, written.owner),
    agent: parseSelector(`${field}.agent`, written.agent),
    session: parseSelector(`${field}.session`, written.session),
    terminal: parseSelector(`${field}.terminal`, written.terminal),
  };
}

export function reaches(resource: GrantResource, target: TerminalTuple): boolean {
  return outOfReach(resource, target) === undefined;
}

/** The first selector that does not match. */
export function outOfReach(
  resource: GrantResource,
  target: TerminalTuple,
): keyof GrantResource | undefined {
  if (!selectsOwner(resource.owner, target.owner)) return 'owner';
  if (!selects(resource.agent, target.agent)) return 'agent';
  if (!selects(resource.session, target.session)) return 'session';
  return selects(resource.terminal, target.id) ? undefined : 'terminal';
}

/** The first selector of `inner` that reaches beyond that of `outer`. */
export function reachesBeyond(
  inner: GrantResource,
  outer: GrantResource,
): keyof GrantResource | undefined {
  if (!isWithinOwnerSelector(inner.owner, outer.owner)) return 'owner';
  return (['agent', 'session', 'terminal'] as const).find(
    (key) => !isWithinSelector(inner[key], outer[key]),
  );
}
