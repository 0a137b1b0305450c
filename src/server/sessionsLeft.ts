/** What sessions of an earlier server left running, until somebody asks about whom they belong to. */
import type { Logger } from 'pino';
import { GranttyError } from '../core/errors.js';
import type { TerminalTuple } from '../core/names.js';
import { isLive } from '../core/terminal.js';
import type { Supervisor, TerminalSnapshot } from '../supervisor/api.js';

/** Whom sessions belong to. */
export type Pair = Pick<TerminalTuple, 'owner' | 'agent'>;

export function pairName({ owner, agent }: Pair): string {
  return `${owner}/${agent}`;
}

export interface LeftSessionsParts {
  readonly supervisor: Supervisor;
  /** Types whose terminals are sessions. */
  readonly types: () => readonly string[];
  /** Takes over one that lives. */
  readonly adopt: (terminal: TerminalSnapshot) => Promise<void>;
  readonly logger: Logger;
}

export class LeftSessions {
  /** In the order of their spawns; found once, before this server has spawned any. */
  #left: Promise<Map<string, TerminalSnapshot[]>> | undefined;
  readonly #adoptions = new Map<string, Promise<void>>();

  constructor(private readonly parts: LeftSessionsParts) {}

  /** Resolves when nothing of the pair is left. @throws SUPERVISOR_UNAVAILABLE: ask again */
  async adopt(pair: Pair): Promise<void> {
    const name = pairName(pair);
    this.#left ??= this.#find().catch((error: unknown) => {
      this.#left = undefined;
      throw error;
    });
    const left = await this.#left;
    const terminals = left.get(name);
    if (terminals !== undefined && !this.#adoptions.has(name)) {
      const adoption = this.#adoptAll(terminals).finally(() => {
        this.#adoptions.delete(name);
        if (terminals.length === 0) left.delete(name);
      });
      this.#adoptions.set(name, adoption);
    }
    await this.#adoptions.get(name);
  }

  async #find(): Promise<Map<string, TerminalSnapshot[]>> {
    const types = this.parts.types();
    const left = new Map<string, TerminalSnapshot[]>();
    for (const terminal of inOrder(await this.parts.supervisor.list())) {
      const { backend, state } = terminal.record;
      if (!types.includes(backend) || !isLive(state)) continue;
      const name = pairName(terminal.record);
      left.set(name, [...(left.get(name) ?? []), terminal]);
    }
    return left;
  }

  /** Takes each off `terminals` once it has been dealt with. */
  async #adoptAll(terminals: TerminalSnapshot[]): Promise<void> {
    for (let terminal = terminals[0]; terminal !== undefined; terminal = terminals[0]) {
      const { owner, id, uid } = terminal.record;
      try {
        const now = await this.parts.supervisor.get({ owner, id, uid });
        if (now !== undefined && isLive(now.record.state)) await this.parts.adopt(now);
      } catch (error) {
        if (error instanceof GranttyError && error.reason === 'SUPERVISOR_UNAVAILABLE') throw error;
        this.parts.logger.warn({ err: error, owner, id }, 'a session could not be taken over');
      }
      terminals.shift();
    }
  }
}

/** As they were spawned; within a second by the start of their processes. */
function inOrder(terminals: readonly TerminalSnapshot[]): TerminalSnapshot[] {
  return [...terminals].sort(
    ({ record: a }, { record: b }) =>
      a.createdAt - b.createdAt || (a.marks?.startTime ?? 0) - (b.marks?.startTime ?? 0),
  );
}
