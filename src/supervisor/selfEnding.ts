/** Ends one instance on the supervisor's own account: at a limit of its life, or with the supervisor. */
import type { ExitReason } from '../core/exitReason.js';
import type { TerminalTuple } from '../core/names.js';
import type { SupervisorContext } from './context.js';
import type { Instance } from './instance.js';
import { InstanceLife, type LifeLimits, type Use } from './instanceLife.js';
import { stopThenKill } from './instanceTree.js';
import { END_GRACE_MS } from './limits.js';

export class SelfEnding {
  readonly #life: InstanceLife;
  #isUnderWay = false;

  constructor(
    private readonly context: SupervisorContext,
    private readonly terminal: Pick<TerminalTuple, 'owner' | 'id'>,
    private readonly instance: Instance,
  ) {
    this.#life = new InstanceLife(context.ticker.now());
  }

  /** Begins to end it when it has lived, or gone without use, for longer than it may. */
  holdToLife(limits: LifeLimits, use: Omit<Use, 'lastSeq'>, now: number): void {
    if (this.#isUnderWay) return;
    const { lastSeq } = this.instance;
    const reason = this.#life.overdue(limits, { ...use, lastSeq }, now);
    if (!reason) return;
    // Such as without a descriptor left to look with; the next look tries again.
    this.end(reason).catch((error: unknown) => {
      const { owner, id } = this.terminal;
      this.context.log.error({ owner, id, reason, err: error }, 'the terminal could not be ended');
    });
  }

  /** Asks it to end, and after the grace makes it; its exit says why. */
  async end(reason: ExitReason): Promise<void> {
    const { owner, id } = this.terminal;
    const { log, hurry } = this.context;
    this.#isUnderWay = true;
    this.instance.endedFor(reason);
    log.info({ owner, id, reason }, 'the terminal is ended');
    try {
      const survivors = await stopThenKill(this.instance.marks, END_GRACE_MS, hurry);
      if (survivors > 0) log.warn({ owner, id, survivors }, 'processes outlived the end');
    } finally {
      this.#isUnderWay = false;
    }
  }
}
