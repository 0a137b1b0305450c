/**
 * Holds `max_terminals` of a grant and of each that it is a part of: the live terminals that records
 * say were created or last started under them, and what is under way. Counted from the records, so
 * that a restart forgets nothing.
 */
import { type Charge, holderKey, isChargedTo, terminalCharges } from '../auth/budgets.js';
import { counted } from '../core/counted.js';
import { GranttyError } from '../core/errors.js';
import { isLive } from '../core/terminal.js';
import type { Supervisor } from '../supervisor/api.js';
import type { Permit } from './gate.js';

export class TerminalQuota {
  /** Holder of a budget → terminals that are being created or started under it now. */
  readonly #underWay = new Map<string, Map<string, number>>();

  constructor(private readonly supervisor: Supervisor) {}

  /**
   * Runs `effect`, which makes the permit's terminal live, within all limits.
   * @throws QUOTA_TERMINALS, and the effect has not begun
   */
  async within<T>({ token, grant, target }: Permit, effect: () => Promise<T>): Promise<T> {
    const charges = terminalCharges(token, grant);
    if (charges.length === 0) return effect();
    const mine = nameOf(target);
    // Taken before anything is awaited: of two calls at the limit the later one sees the earlier.
    const taken = charges.map((charge) => this.#take(charge, mine));
    try {
      const terminals = await this.supervisor.list();
      for (const { charge, before } of taken) {
        for (const { record } of terminals) {
          const { createdBy } = record;
          const counts = createdBy && isChargedTo(createdBy, charge.holder);
          if (counts && isLive(record.state)) before.add(nameOf(record));
        }
        // A repeated create of the same terminal is answered as the first was.
        before.delete(mine);
        if (before.size >= charge.limit) throw usedUp(charge);
      }
      return await effect();
    } finally {
      for (const { charge } of taken) this.#giveBack(charge, mine);
    }
  }

  /** Counts one more under way, and tells which were before. */
  #take(charge: Charge, mine: string): { readonly charge: Charge; readonly before: Set<string> } {
    const holder = holderKey(charge.holder);
    const underWay = this.#underWay.get(holder) ?? new Map<string, number>();
    const before = new Set(underWay.keys());
    this.#underWay.set(holder, underWay.set(mine, (underWay.get(mine) ?? 0) + 1));
    return { charge, before };
  }

  #giveBack(charge: Charge, mine: string): void {
    const holder = holderKey(charge.holder);
    const underWay = this.#underWay.get(holder);
    const left = (underWay?.get(mine) ?? 1) - 1;
    if (left > 0) underWay?.set(mine, left);
    else underWay?.delete(mine);
    if (underWay?.size === 0) this.#underWay.delete(holder);
  }
}

function usedUp({ holder, limit }: Charge): GranttyError {
  const grant = holder.grants.at(-1) ?? '';
  return new GranttyError(
    'QUOTA_TERMINALS',
    `grant ${grant} allows ${counted(limit, 'live terminal')}; end one of them, or use another grant`,
    {
      metadata: { grant_id: grant },
    },
  );
}

function nameOf({ owner, id }: { readonly owner: string; readonly id: string }): string {
  return `${owner}/${id}`;
}
