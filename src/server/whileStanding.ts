/** Runs something long under authority that may end in the middle of it. */
import { HEARTBEAT_MS } from '../core/limits.js';
import type { Clock } from './clock.js';
import type { OpenStream } from './openStreams.js';
import type { Standing } from './standing.js';
import { Cancelled } from './status.js';

export interface Footing {
  readonly standing: Standing;
  readonly stream: OpenStream;
  readonly clock: Clock;
  /** Aborts when the call is over. */
  readonly over: AbortSignal;
}

/** Why the signal of a work that is done aborts; made once, as each takes a look at the stack. */
const DONE = new Cancelled();

/** Milliseconds between looks at most: a clock may be set forward, past the end of authority. */
const MAX_WAIT_MS = HEARTBEAT_MS;

/**
 * Runs `work`, whose signal aborts when authority ends, the server drains or the call is over.
 * @throws the reason, then; `Cancelled` for the call
 */
export async function whileStanding<T>(
  { standing, stream, clock, over }: Footing,
  work: (stop: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  let cancelTimer = () => {};
  const look = async (): Promise<void> => {
    cancelTimer();
    try {
      await standing.uphold();
    } catch (error) {
      controller.abort(error);
    }
    if (controller.signal.aborted) return;
    const wait = Math.min(standing.notAfter - clock.now(), MAX_WAIT_MS);
    cancelTimer = clock.after(wait, () => void look());
  };
  const cancel = () => controller.abort(new Cancelled());
  const send = () => controller.abort(stream.stop.reason);
  over.addEventListener('abort', cancel);
  stream.stop.addEventListener('abort', send);
  stream.onRecheck = () => void look();
  if (over.aborted) cancel();
  if (stream.stop.aborted) send();
  try {
    await look();
    controller.signal.throwIfAborted();
    const result = await work(controller.signal);
    controller.signal.throwIfAborted();
    return result;
  } finally {
    stream.onRecheck = () => {};
    over.removeEventListener('abort', cancel);
    stream.stop.removeEventListener('abort', send);
    controller.abort(DONE);
    cancelTimer();
  }
}
