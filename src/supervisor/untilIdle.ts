/** Waiting until no terminal of a supervisor lives. */
import { GranttyError } from '../core/errors.js';
import { isLive } from '../core/terminal.js';
import type { Supervisor } from './api.js';

/** Resolves when none lives, or when the signal fires. */
export async function untilIdle(supervisor: Supervisor, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await follow(supervisor, signal);
      return;
    } catch (error) {
      // Too far behind the changes: the next look begins with a snapshot.
      if (!(error instanceof GranttyError)) throw error;
    }
  }
}

async function follow(supervisor: Supervisor, signal: AbortSignal): Promise<void> {
  /** By uid. */
  const live = new Set<string>();
  for await (const change of supervisor.changes(undefined, signal)) {
    if (change.kind === 'removed') live.delete(change.uid);
    const seen = change.kind === 'snapshot' ? change.terminals : [];
    for (const { record } of change.kind === 'changed' ? [change.terminal] : seen) {
      if (isLive(record.state)) live.add(record.uid);
      else live.delete(record.uid);
    }
    if (live.size === 0) return;
  }
}
