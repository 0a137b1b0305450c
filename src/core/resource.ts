/** The resource of a grant: four selectors, all of which a terminal must match. */
import { asObjectOf } from './jsonShape.js';
import type { TerminalTuple } from './names.js';
import { parseSelector, type Selector, selects, selectsOwner } from './selector.js';

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
  return (
    selectsOwner(resource.owner, target.owner) &&
    selects(resource.agent, target.agent) &&
    selects(resource.session, target.session) &&
    selects(resource.terminal, target.id)
  );
}
