/** The way of one attachment's input to its terminal: in order, a bounded stretch ahead of its acks. */
import type { InputChannel, Lease } from '../supervisor/api.js';
import type { Answers } from './answers.js';

/**
 * Input bytes sent on and not yet taken by the line discipline. Above it no frame is read from the
 * client, whose own window then fills: so a paste waits instead of being refused. Four such
 * attachments fit the queue of a terminal.
 */
const MAX_UNTAKEN_BYTES = 256 * 1024;

export class InputLane {
  #untaken = 0;
  #wake: (() => void) | undefined;
  #acknowledged: number;

  constructor(
    private readonly channel: InputChannel,
    private readonly answers: Answers,
    /** Aborts when nobody will be told of acks any more. */
    private readonly over: AbortSignal,
  ) {
    this.#acknowledged = channel.taken;
    over.addEventListener('abort', () => this.#wake?.(), { once: true });
  }

  /** Sends on; `failed` is told when the terminal did not take all of it. */
  send(data: Uint8Array, lease: Lease, failed: (error: unknown) => void): void {
    this.#untaken += data.length;
    this.channel.send(data, lease).then(
      (taken) => this.#settle(data.length, taken),
      (error: unknown) => {
        this.#settle(data.length, this.channel.taken);
        failed(error);
      },
    );
  }

  /** Whether `room` would wait. */
  get isFull(): boolean {
    return this.#untaken > MAX_UNTAKEN_BYTES && !this.over.aborted;
  }

  /** Resolves when another frame may be sent. */
  async room(): Promise<void> {
    while (this.isFull) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #settle(bytes: number, taken: number): void {
    this.#untaken -= bytes;
    if (this.#untaken <= MAX_UNTAKEN_BYTES) this.#wake?.();
    if (taken <= this.#acknowledged) return;
    this.#acknowledged = taken;
    this.answers.acknowledge(taken);
  }
}
