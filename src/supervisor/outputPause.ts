/** Whether a terminal's output is held back because its log cannot be written, and why. */
import { GranttyError } from '../core/errors.js';
import type { TerminalSnapshot } from './api.js';
import type { Log } from './context.js';

export class OutputPause {
  #reason: TerminalSnapshot['paused'];

  constructor(
    private readonly log: Log,
    private readonly terminal: () => { readonly owner: string; readonly id: string },
    private readonly onChange: () => void,
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
    const { owner, id } = this.terminal();
    if (failure) this.log.error({ owner, id, paused, err: failure.error }, 'output is held back');
    else this.log.info({ owner, id }, 'output goes on');
    this.onChange();
  }
}

function pauseOf(error: unknown): NonNullable<TerminalSnapshot['paused']> {
  const isQuota = error instanceof GranttyError && error.reason === 'QUOTA_LOG_BYTES';
  return isQuota ? 'log-quota' : 'log-unwritable';
}
