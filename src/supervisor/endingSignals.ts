/** The signals by which a supervisor is told to end: now, at once, or when it has nothing to do. */

/** Asks a supervisor to end when no terminal lives. */
export const END_WHEN_IDLE = 'SIGUSR2';

export interface EndingSignals extends Disposable {
  /** Aborts at the first SIGTERM or SIGINT. */
  readonly signal: AbortSignal;
  /** Aborts at the second: no grace is left to what is being ended. A third ends this process at once. */
  readonly hurry: AbortSignal;
  /** Aborts at END_WHEN_IDLE. */
  readonly whenIdle: AbortSignal;
}

/** A hang-up is ignored: a supervisor outlives the terminal that it was started from. */
export function endingSignals(): EndingSignals {
  const ending = new AbortController();
  const hurrying = new AbortController();
  const idling = new AbortController();
  const end = (name: NodeJS.Signals) => {
    if (hurrying.signal.aborted) {
      process.off(name, end);
      process.kill(process.pid, name);
    } else if (ending.signal.aborted) hurrying.abort();
    else ending.abort();
  };
  const endWhenIdle = () => idling.abort();
  const ignore = () => {};
  process.on('SIGTERM', end).on('SIGINT', end).on('SIGHUP', ignore).on(END_WHEN_IDLE, endWhenIdle);
  return {
    signal: ending.signal,
    hurry: hurrying.signal,
    whenIdle: idling.signal,
    [Symbol.dispose]() {
      process.off('SIGTERM', end).off('SIGINT', end).off('SIGHUP', ignore);
      process.off(END_WHEN_IDLE, endWhenIdle);
    },
  };
}
