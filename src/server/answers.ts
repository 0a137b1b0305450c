/** What the server answers to the frames of an attached client, bounded apart from the output. */
import { GranttyError } from '../core/errors.js';
import type { AttachFrameKind } from '../gen/public/grantty/v1/stream_pb.js';
import type { Outlet } from './outlet.js';
import { encodeInputAck, encodeMessage } from './streamEvents.js';
import { toReason } from './wire.js';

/**
 * Bytes of answers that may wait for a client, some thousands of them. Above it no frame is read from
 * it. Output that waits does not count: a client behind a flood must be able to interrupt it.
 */
const MAX_UNREAD_BYTES = 64 * 1024;

export class Answers {
  #unread = 0;
  #wake: (() => void) | undefined;

  constructor(
    private readonly out: Outlet,
    /** Aborts when there is nobody to answer any more. */
    private readonly over: AbortSignal,
  ) {
    over.addEventListener('abort', () => this.#wake?.(), { once: true });
  }

  /** Whether `room` would wait. */
  get isFull(): boolean {
    return this.#unread > MAX_UNREAD_BYTES && !this.over.aborted;
  }

  acknowledge(taken: number): void {
    this.#write(encodeInputAck(taken));
  }

  #write(message: Uint8Array): void {
    this.#unread += message.length;
    this.out.write(message, () => {
      this.#unread -= message.length;
      if (this.#unread <= MAX_UNREAD_BYTES) this.#wake?.();
    });
  }

  /** `denied` for one frame. @throws what is no refusal of that frame: it ends the stream */
  refuse(frameIndex: number, frame: AttachFrameKind, error: unknown): void {
    if (!(error instanceof GranttyError) || error.reason === 'SUPERVISOR_UNAVAILABLE') throw error;
    const value = {
      frameIndex: BigInt(frameIndex),
      frame,
      requiredAction: error.metadata.required_action ?? '',
      reason: toReason(error.reason),
      message: error.message,
      decisionId: error.metadata.decision_id ?? '',
    };
    this.#write(encodeMessage({ case: 'denied', value }));
  }

  /** Resolves when the client has read enough of them, or at the end. */
  async room(): Promise<void> {
    while (this.isFull) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
