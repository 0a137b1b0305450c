/**
 * Holds a grant's `max_terminals`: the live terminals that records say were created under it, and
 * the creations that are under way. Counted from the records, so that a restart forgets nothing.
 */
import { GranttyError } from '../core/errors.js';
import { isLive, type TerminalRecord } from '../core/terminal.js';
import type { Supervisor } from '../supervisor/api.js';
import type { Permit } from './gate.js';

export class TerminalQuota {
  /** Holder of a budget → terminals that are being created or started under it now. */
  readonly #underWay = new Map<string, Map<string, number>>();

  constructor(private readonly supervisor: Supervisor) {}

  /**
   * Runs `effect`, which makes the permit's terminal live, within the limit.
   * @throws QUOTA_TERMINALS, and the effect has not begun
   */
  async within<T>(permit: Permit, effect: () => Promise<T>): Promise<T> {
    const limit = permit.grant.constraints.maxTerminals;
    if (limit === undefined) return effect();
    const holder = holderOf(permit);
    const mine = nameOf(permit.target);
    const underWay = this.#underWay.get(holder) ?? new Map<string, number>();
    this.#underWay.set(holder, underWay);
    // Taken before anything is awaited: of two calls at the limit the later one sees the earlier.
    const before = new Set(underWay.keys());
    underWay.set(mine, (underWay.get(mine) ?? 0) + 1);
    try {
      for (const { record } of await this.supervisor.list()) {
        if (isLive(record.state) && isCharged(record, permit)) before.add(nameOf(record));
      }
      // A repeated create of the same terminal is answered as the first was.
      before.delete(mine);
      if (before.size >= limit) {
        throw new GranttyError('QUOTA_TERMINALS', `the grant allows ${limit} live terminals`);
      }
      return await effect();
    } finally {
      const left = (underWay.get(mine) ?? 1) - 1;
      if (left > 0) underWay.set(mine, left);
      else underWay.delete(mine);
      if (underWay.size === 0) this.#underWay.delete(holder);
    }
  }
}

function isCharged({ createdBy }: TerminalRecord, { token, grant }: Permit): boolean {
  return (
    createdBy !== undefined &&
    createdBy.issuer === token.issuer &&
    createdBy.subject === token.subject &&
    createdBy.grants.includes(grant.id)
  );
}

function holderOf({ token, grant }: Permit): string {
  return JSON.stringify([token.issuer, token.subject, grant.id]);
}

function nameOf({ owner, id }: { readonly owner: string; readonly id: string }): string {
  return `${owner}/${id}`;
}
