/** One send to one reader: `started`, deltas, `result`; or `closing` when its authority ends before. */
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type ErrorReason, GranttyError } from '../core/errors.js';
import { SendResponseSchema } from '../gen/public/grantty/v1/session_service_pb.js';
import type { Call } from './call.js';
import type { ServerContext } from './context.js';
import { endingOf } from './ending.js';
import { close } from './eventStream.js';
import type { OpenStream } from './openStreams.js';
import type { Outlet } from './outlet.js';
import { Pulse } from './pulse.js';
import type { SendStep, SessionSend } from './sessionSend.js';
import { toSendResult } from './sessionWire.js';
import type { Standing } from './standing.js';
import { Cancelled } from './status.js';

/** Bytes that may wait for one reader; what comes later stays with the send. */
const MAX_PENDING_BYTES = 1024 * 1024;

/** Why a lease does not let type any more. */
const LOST_AUTHORITY: readonly ErrorReason[] = ['GRANT_REVOKED', 'TOKEN_EXPIRED'];

export function noSuchSend(): GranttyError {
  return new GranttyError(
    'TERMINAL_NOT_FOUND',
    'there is no such send: an id is kept for 10 minutes, and by one server alone; send again',
  );
}

export interface SendStream {
  readonly call: Call;
  readonly out: Outlet;
  readonly standing: Standing;
  readonly stream: OpenStream;
  readonly send: SessionSend;
  /** Another than the sender reads. */
  readonly isOther?: true;
  /** Index of the last delta that the reader has. */
  readonly afterIndex: number;
}

/**
 * Leaves the send as it is, however the stream ends.
 * @throws the error of the status that the stream ends with, unless it is OK
 */
export async function serveSend(context: ServerContext, reading: SendStream): Promise<void> {
  const { call, out, stream } = reading;
  try {
    await new Reading(context, reading).run();
  } catch (error) {
    if (call.signal.aborted) throw new Cancelled();
    const ending = endingOf(error);
    if (ending === undefined) throw error;
    close(out, ending);
  } finally {
    stream.onRecheck = () => {};
  }
}

class Reading {
  /** From `started` on, which is the first message. */
  #pulse: Pulse | undefined;
  #afterIndex: number;
  /** Wakes the loop. */
  #look = () => {};

  constructor(
    private readonly context: ServerContext,
    private readonly reading: SendStream,
  ) {
    this.#afterIndex = reading.afterIndex;
  }

  async run(): Promise<void> {
    const { clock } = this.context;
    const { call, out, standing, stream, send } = this.reading;
    const wake = () => this.#wake();
    const cancelEnd = clock.after(standing.notAfter - clock.now(), wake);
    stream.onRecheck = wake;
    stream.stop.addEventListener('abort', wake);
    call.signal.addEventListener('abort', wake);
    try {
      const lastSeq = await this.#standingUntil(this.#ofSend(send.started));
      this.#pulse = new Pulse({
        clock,
        out,
        notAfter: () => standing.notAfter,
        lastSeq: () => 0,
        onEnd: wake,
      });
      const { logEpoch } = send.origin;
      const value = { sendId: send.id, lastSeq: BigInt(lastSeq), logEpoch };
      this.#send({ case: 'started', value });
      for (;;) {
        const step = send.next(this.#afterIndex);
        if (step === undefined) await this.#standingUntil(send.changed);
        else if (this.#tell(step, lastSeq)) return;
        await this.#room();
      }
    } finally {
      cancelEnd();
      this.#pulse?.[Symbol.dispose]();
      stream.stop.removeEventListener('abort', wake);
      call.signal.removeEventListener('abort', wake);
    }
  }

  /** True: it was the last. */
  #tell(step: SendStep, lastSeq: number): boolean {
    if (step.kind === 'result') {
      this.#send({ case: 'result', value: toSendResult(step.result, lastSeq) });
      return true;
    }
    const { index, text, truncated } = step.delta;
    this.#afterIndex = index;
    this.#send({ case: 'delta', value: { index: BigInt(index), text, truncated } });
    return false;
  }

  /** The authority that a sender lost is not the reader's: no text was typed, so there is no send. */
  async #ofSend<T>(outcome: Promise<T>): Promise<T> {
    try {
      return await outcome;
    } catch (error) {
      const sendersEnd = error instanceof GranttyError && LOST_AUTHORITY.includes(error.reason);
      throw this.reading.isOther && sendersEnd ? noSuchSend() : error;
    }
  }

  /** @throws why the stream may not go on */
  async #standingUntil<T>(event: Promise<T>): Promise<T> {
    const reached = event.then((value) => ({ value }));
    // If the stream ends by something else, this is heard by nobody.
    reached.catch(() => {});
    for (;;) {
      const woken = new Promise<undefined>((resolve) => {
        this.#look = () => resolve(undefined);
      });
      await this.#uphold();
      const outcome = await Promise.race([reached, woken]);
      if (outcome === undefined) continue;
      await this.#uphold();
      return outcome.value;
    }
  }

  async #uphold(): Promise<void> {
    const { call, stream, standing } = this.reading;
    stream.stop.throwIfAborted();
    if (call.signal.aborted) throw new Cancelled();
    if (await standing.uphold()) this.#pulse?.beat();
  }

  /** The reader's pace. */
  async #room(): Promise<void> {
    const { out } = this.reading;
    do {
      await this.#uphold();
      await out.drained(MAX_PENDING_BYTES);
    } while (out.pendingBytes > MAX_PENDING_BYTES);
  }

  #send(event: NonNullable<MessageInitShape<typeof SendResponseSchema>['event']>): void {
    this.#pulse?.send(toBinary(SendResponseSchema, create(SendResponseSchema, { event })));
  }

  #wake(): void {
    this.#look();
    this.reading.out.nudge();
  }
}
