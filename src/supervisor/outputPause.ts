/** Whether a terminal's output is held back because its log cannot be written, and why. */
import { GranttyError } from '../core/errors.js';
import type { TerminalSnapshot } from './api.js';
import type { SupervisorContext } from './context.js';
import type { Terminal } from './terminal.js';

export class OutputPause {
  #reason: TerminalSnapshot['paused'];

  constructor(
    private readonly context: SupervisorContext,
    private readonly terminal: Terminal,
  ) {}

  /** Undefined while all is written. */
  get reason(): TerminalSnapshot['paused'] {
    return this.#reason;
  }

  /** The log could not be written; undefined when it can again. */
  report(failure: { readonly error: unknown } | undefined): void {
    const paused = failure && pauseOf(failure.error);
    if (paused === this.#reason) return;
    this.#reason = paused;
    const { owner, id } = this.terminal.record;
    const { log } = this.context;
    if (failure) log.error({ owner, id, paused, err: failure.error }, 'output is held back');
    else log.info({ owner, id }, 'output goes on');
    this.context.changed(this.terminal);
  }
}

function pauseOf(error: unknown): NonNullable<TerminalSnapshot['paused']> {
  const isQuota = error instanceof GranttyError && error.reason === 'QUOTA_LOG_BYTES';
  return isQuota ? 'log-quota' : 'log-unwritable';
}
