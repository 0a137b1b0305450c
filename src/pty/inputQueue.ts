/** Input on its way into one PTY: frames whole, in order, bounded, and never written without leave. */
import { errorCode, GranttyError } from '../core/errors.js';
import { MAX_INPUT_QUEUE_BYTES } from '../core/limits.js';

/**
 * Milliseconds until the next attempt when the line discipline took nothing, or not all. Doubles up
 * to the longest while nothing is taken. The shortest bounds attempts to 200 a second.
 */
const SHORTEST_WAIT_MS = 5;
const LONGEST_WAIT_MS = 80;

/** Runs `action` once after `ms`; the answer cancels it. Injected, so that tests own the time. */
export type Timer = (action: () => void, ms: number) => () => void;

export const systemTimer: Timer = (action, ms) => {
  const timeout = setTimeout(action, ms);
  return () => clearTimeout(timeout);
};

interface Frame {
  readonly data: Uint8Array;
  /** Bytes of it that have been taken. */
  taken: number;
  readonly mayWrite: () => GranttyError | undefined;
  readonly onTaken: ((bytes: number) => void) | undefined;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class InputQueue {
  readonly #frames: Frame[] = [];
  #queuedBytes = 0;
  #waitMs = SHORTEST_WAIT_MS;
  /** Cancels the attempt that is due; present exactly while the queue waits for the line discipline. */
  #cancelRetry: (() => void) | undefined;
  /** Callbacks of a frame may send, drop or end. */
  #flushing = false;
  #ended: GranttyError | undefined;

  /**
   * `write` writes bytes from `offset` on without blocking and answers how many were taken; it
   * throws EAGAIN when none can be.
   */
  constructor(
    private readonly write: (data: Uint8Array, offset: number) => number,
    private readonly timer: Timer = systemTimer,
  ) {}

  /** Bytes accepted and not yet taken. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /**
   * Queues one frame; resolves when the line discipline has taken all of it. `data` must not change
   * until then. `mayWrite` is asked now, so that nothing waits in vain, and immediately before each
   * attempt; when it refuses, the frame ends where it is. `onTaken` hears how many bytes are taken,
   * each time some are.
   */
  send(
    data: Uint8Array,
    mayWrite: () => GranttyError | undefined,
    onTaken?: (bytes: number) => void,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const refusal = this.#ended ?? mayWrite();
      if (refusal) throw refusal;
      if (this.#queuedBytes + data.length > MAX_INPUT_QUEUE_BYTES) {
        throw new GranttyError(
          'INPUT_QUEUE_FULL',
          'the program does not read its input, and as much as may wait does; send less or later',
          { retryAfterMs: 1000 },
        );
      }
      this.#frames.push({ data, taken: 0, mayWrite, onTaken, resolve, reject });
      this.#queuedBytes += data.length;
      this.#flush();
    });
  }

  /** Asks again for every queued frame and rejects those that are refused now. */
  dropRefused(): void {
    for (const frame of this.#frames.slice()) {
      const refusal = frame.mayWrite();
      if (refusal) this.#drop(frame, refusal);
    }
  }

  /** Rejects what is queued and whatever comes later. */
  end(reason: GranttyError): void {
    this.#ended ??= reason;
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
    for (const frame of this.#frames.splice(0)) frame.reject(reason);
    this.#queuedBytes = 0;
  }

  #flush(): void {
    if (this.#flushing || this.#cancelRetry) return;
    this.#flushing = true;
    try {
      for (let frame = this.#frames[0]; frame; frame = this.#frames[0]) {
        const refusal = frame.mayWrite();
        if (refusal) this.#drop(frame, refusal);
        else if (!this.#advance(frame)) break;
      }
    } finally {
      this.#flushing = false;
    }
  }

  /** One attempt; true when the frame is done and the next may follow. */
  #advance(frame: Frame): boolean {
    const taken = this.#attempt(frame);
    if (taken === undefined) return false;
    frame.taken += taken;
    this.#queuedBytes -= taken;
    if (taken > 0) this.#waitMs = SHORTEST_WAIT_MS;
    const isWhole = frame.taken === frame.data.length;
    if (isWhole) {
      this.#frames.shift();
      frame.resolve();
    } else {
      this.#retryLater();
    }
    if (taken > 0) frame.onTaken?.(taken);
    return isWhole;
  }

  /** Bytes taken; undefined when the terminal is gone and the queue has ended. */
  #attempt(frame: Frame): number | undefined {
    try {
      return this.write(frame.data, frame.taken);
    } catch (error) {
      if (errorCode(error) === 'EAGAIN') return 0;
      this.end(
        new GranttyError('TERMINAL_EXITED', 'the terminal takes no input any more', {
          cause: error,
        }),
      );
      return undefined;
    }
  }

  #retryLater(): void {
    this.#cancelRetry = this.timer(() => {
      this.#cancelRetry = undefined;
      this.#flush();
    }, this.#waitMs);
    this.#waitMs = Math.min(this.#waitMs * 2, LONGEST_WAIT_MS);
  }

  #drop(frame: Frame, reason: GranttyError): void {
    const index = this.#frames.indexOf(frame);
    if (index < 0) return;
    this.#frames.splice(index, 1);
    this.#queuedBytes -= frame.data.length - frame.taken;
    frame.reject(reason);
  }
}
