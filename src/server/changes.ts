/** Where WatchTerminals begins in the supervisor's changes. */
import { GranttyError } from '../core/errors.js';
import type { Supervisor, TerminalChange, TerminalSnapshot } from '../supervisor/api.js';

export interface ChangeFeed {
  /** What there was at the start; absent: the client goes on from its cursor. */
  readonly snapshot: readonly TerminalSnapshot[] | undefined;
  readonly cursor: string;
  readonly changes: AsyncIterator<TerminalChange>;
}

/** For who may read nothing, and so is told nothing. */
export const nothing: ChangeFeed = {
  snapshot: [],
  cursor: '',
  changes: { next: () => new Promise(() => {}) },
};

/** Changes after `cursor` if the supervisor can go on from there, else from now on. */
export async function openFeed(
  supervisor: Supervisor,
  cursor: string | undefined,
  stop: AbortSignal,
): Promise<ChangeFeed> {
  const fresh = supervisor.changes(undefined, stop)[Symbol.asyncIterator]();
  const now = await firstOf(fresh);
  // Nothing has changed: that alone tells that the client is up to date before something does.
  if (now.cursor === cursor) return { snapshot: undefined, cursor, changes: fresh };
  if (cursor === undefined) return { ...snapshotOf(now), cursor: now.cursor, changes: fresh };
  await fresh.return?.();
  const missed = supervisor.changes(cursor, stop)[Symbol.asyncIterator]();
  const first = await firstOf(missed);
  if (first.kind === 'snapshot')
    return { ...snapshotOf(first), cursor: first.cursor, changes: missed };
  return { snapshot: undefined, cursor, changes: following(first, missed) };
}

function snapshotOf(change: TerminalChange): Pick<ChangeFeed, 'snapshot'> {
  return { snapshot: change.kind === 'snapshot' ? change.terminals : [] };
}

async function firstOf(changes: AsyncIterator<TerminalChange>): Promise<TerminalChange> {
  const { done, value } = await changes.next();
  if (done) throw supervisorStopped();
  return value;
}

async function* following(
  first: TerminalChange,
  rest: AsyncIterator<TerminalChange>,
): AsyncGenerator<TerminalChange, void, undefined> {
  yield first;
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
}

export function supervisorStopped(): GranttyError {
  return new GranttyError('SUPERVISOR_UNAVAILABLE', 'the supervisor has stopped; resume later');
}
