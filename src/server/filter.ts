/** Filters of lists of terminals. */
import { type Name, parseName } from '../core/names.js';
import type { TerminalFilter } from '../gen/public/grantty/v1/terminal_service_pb.js';
import type { TerminalSnapshot } from '../supervisor/api.js';
import { known } from './fields.js';
import { terminalStateOf } from './wire.js';

export interface Filter {
  /** The only owner whose terminals can match. */
  readonly owner: Name | undefined;
  terminal(terminal: TerminalSnapshot): boolean;
}

/** @throws FIELD_INVALID */
export function parseFilter(filter: TerminalFilter | undefined): Filter {
  const name = (field: 'owner' | 'agent' | 'session') => {
    const text = filter?.[field];
    return text === undefined ? undefined : parseName(`filter.${field}`, text);
  };
  const owner = name('owner');
  const agent = name('agent');
  const session = name('session');
  const states = filter?.states.map((state) => known('filter.states', terminalStateOf(state)));
  const labels = Object.entries(filter?.labels ?? {});
  return {
    owner,
    terminal: ({ record }) =>
      (owner === undefined || record.owner === owner) &&
      (agent === undefined || record.agent === agent) &&
      (session === undefined || record.session === session) &&
      (states === undefined || states.length === 0 || states.includes(record.state)) &&
      labels.every(
        ([key, value]) => Object.hasOwn(record.labels, key) && record.labels[key] === value,
      ),
  };
}

/** Equal for filters that mean the same; to be hashed. */
export function canonicalFilter(filter: TerminalFilter | undefined): readonly unknown[] {
  const { owner, agent, session, states = [], labels = {} } = filter ?? {};
  return [owner, agent, session, [...new Set(states)].sort(), Object.entries(labels).sort()];
}
