/** The outgoing side of one streaming call: encoded messages in, how far the client is behind out. */
import type { Writable } from 'node:stream';
import type { FramedMessage } from './framedMessage.js';

/**
 * Counts the bytes that wait for the client. It never refuses and never drops: who writes looks at
 * `pendingBytes` and stops until `drained`. Writes after the end of the call are ignored.
 */
export class Outlet {
  #pendingBytes = 0;
  #sentBytes = 0;
  #low = 0;
  #closed = false;
  #wake: (() => void) | undefined;

  constructor(
    private readonly call: Writable,
    /** Aborts when the call is over, however it ended. */
    private readonly signal: AbortSignal,
  ) {
    signal.addEventListener('abort', () => this.nudge(), { once: true });
  }

  /** Bytes written here that HTTP/2 flow control has not let out yet. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /** Bytes written here since the call began. */
  get sentBytes(): number {
    return this.#sentBytes;
  }

  /**
   * `message` is an encoded protobuf message; it is not copied and must not change until `sent` is
   * called: it has gone out then. When the call ends before that, it is never called.
   */
  write(message: Uint8Array | FramedMessage, sent?: () => void): void {
    if (this.#closed || this.signal.aborted) return;
    const size = message.byteLength;
    this.#pendingBytes += size;
    this.#sentBytes += size;
    this.call.write(message, (error) => {
      this.#pendingBytes -= size;
      if (!error) sent?.();
      if (this.#pendingBytes <= this.#low) this.nudge();
    });
  }

  /** What is written later is ignored: the last message of the stream has been written. */
  close(): void {
    this.#closed = true;
  }

  /** Resolves when at most `low` bytes wait, when the call is over, or when nudged: look again. */
  async drained(low: number): Promise<void> {
    if (this.#pendingBytes <= low || this.signal.aborted) return;
    this.#low = low;
    await new Promise<void>((resolve) => {
      const others = this.#wake;
      this.#wake = () => {
        others?.();
        resolve();
      };
    });
  }

  /** Ends every wait for `drained`. */
  nudge(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}
