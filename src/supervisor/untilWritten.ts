/** Repeats a write that the disk refuses, so that a full disk delays and loses nothing. */
import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds between attempts. */
const RETRY_MS = 500;

/**
 * Runs `step` until it succeeds. True when it did, false when `signal` fired first. `report` hears
 * each failure, and undefined once it works after one.
 */
export async function untilWritten(
  step: () => Promise<void>,
  signal: AbortSignal,
  report: (failure: { readonly error: unknown } | undefined) => void,
): Promise<boolean> {
  let failed = false;
  while (!signal.aborted) {
    try {
      await step();
      if (failed) report(undefined);
      return true;
    } catch (error) {
      failed = true;
      report({ error });
      await delay(RETRY_MS, undefined, { signal }).catch(() => {});
    }
  }
  return false;
}
