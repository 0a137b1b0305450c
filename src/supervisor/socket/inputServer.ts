/** The supervisor's end of an input connection: chunks to the terminal, acknowledgements back. */
import { create } from '@bufbuild/protobuf';
import { type Input, WelcomeSchema } from '../../gen/internal/grantty/internal/v1/connection_pb.js';
import {
  type InputAck,
  InputAckSchema,
  type InputChunk,
} from '../../gen/internal/grantty/internal/v1/input_pb.js';
import type { InputChannel, Supervisor } from '../api.js';
import { encodeFailure } from './failureCodec.js';
import type { FrameSocket } from './frameSocket.js';
import { decodeChunk, encodePlainAck } from './inputCodec.js';
import { type SocketLog, unavailable, unsound } from './protocol.js';
import { decodeAttachmentSpec, decodeKey } from './specCodec.js';

/**
 * Milliseconds that an acknowledgement waits for others. Nobody types on it, and told at once it would
 * be in the way of the echo: the server would pass it on first.
 */
const ACK_WAIT_MS = 10;
/** Bytes taken that are acknowledged at once: a paste has more under way, and waits for room. */
const ACK_BYTES = 16 * 1024;

/**
 * Resolves when the connection is closed. Chunks that a client had queued when it was lost are
 * dropped, and the attachment can be resumed.
 * @throws what `Supervisor.attach` throws, before anything was answered
 */
export async function serveInput(
  frames: FrameSocket,
  supervisor: Supervisor,
  input: Input,
  log: SocketLog,
): Promise<void> {
  const channel = await supervisor.attach(decodeKey(input.key), decodeAttachmentSpec(input));
  const intake = new Intake(channel, frames, log);
  frames.receive((body) => intake.take(decodeChunk(body)));
  const { attachmentId, resumed, taken } = channel;
  frames.send(
    WelcomeSchema,
    create(WelcomeSchema, {
      outcome: { case: 'attached', value: { attachmentId, resumed, taken } },
    }),
  );

  const failure = await frames.closed;
  intake.stop();
  const { chunks, bytes } = intake.unsettled;
  await channel[Symbol.asyncDispose]();
  if (chunks === 0) return;
  log.warn({ err: failure, attachmentId, chunks, bytes }, 'input of a lost server was dropped');
}

class Intake {
  readonly #channel: InputChannel;
  readonly #frames: FrameSocket;
  readonly #log: SocketLog;
  /** Number of the last chunk that arrived. */
  #arrived = 0;
  #unsettledBytes = 0;
  /** Every chunk up to this number is settled, and those in `#settledEarly`. */
  #through = 0;
  readonly #settledEarly = new Set<number>();
  #ackTimer: NodeJS.Timeout | undefined;
  /** Of chunks that are settled, and not acknowledged yet. */
  #unacknowledgedBytes = 0;
  #ended = false;
  #endIsAnswered = false;

  constructor(channel: InputChannel, frames: FrameSocket, log: SocketLog) {
    this.#channel = channel;
    this.#frames = frames;
    this.#log = log;
  }

  /** What has arrived and is neither taken nor refused. */
  get unsettled(): { readonly chunks: number; readonly bytes: number } {
    const chunks = this.#arrived - this.#through - this.#settledEarly.size;
    return { chunks, bytes: this.#unsettledBytes };
  }

  take({ number, data, leaseId, notAfter, end }: InputChunk): void {
    if (this.#ended) throw unsound('input after its end');
    if (end) {
      this.#end().catch((error: unknown) => {
        this.#frames.destroy(unavailable('an attachment could not be ended', error));
      });
      return;
    }
    if (number !== this.#arrived + 1) throw unsound('input with a gap');
    this.#arrived = number;
    this.#unsettledBytes += data.length;
    this.#channel.send(data, { id: leaseId, notAfter }).then(
      () => this.#settle(number, data.length),
      (error: unknown) => this.#settle(number, data.length, { error }),
    );
  }

  /** Says nothing more: nobody listens. */
  stop(): void {
    clearTimeout(this.#ackTimer);
    this.#ackTimer = undefined;
  }

  #settle(number: number, bytes: number, failed?: { readonly error: unknown }): void {
    this.#unsettledBytes -= bytes;
    this.#unacknowledgedBytes += bytes;
    if (number === this.#through + 1) this.#through = number;
    else this.#settledEarly.add(number);
    while (this.#settledEarly.delete(this.#through + 1)) this.#through += 1;
    if (failed) {
      this.#answer({ failed: number, failure: encodeFailure(failed.error, this.#log) });
    } else if (this.#unacknowledgedBytes >= ACK_BYTES) {
      this.#acknowledge();
    } else {
      this.#ackTimer ??= setTimeout(() => this.#acknowledge(), ACK_WAIT_MS);
    }
    this.#closeWhenDone();
  }

  async #end(): Promise<void> {
    this.#ended = true;
    await this.#channel[Symbol.asyncDispose]();
    this.#answer({ ended: true });
    this.#endIsAnswered = true;
    this.#closeWhenDone();
  }

  #closeWhenDone(): void {
    if (!this.#endIsAnswered || this.unsettled.chunks > 0) return;
    if (this.#ackTimer !== undefined) this.#acknowledge();
    this.#frames.close();
  }

  #acknowledge(): void {
    this.stop();
    this.#unacknowledgedBytes = 0;
    this.#frames.sendParts([encodePlainAck(this.#through, this.#channel.taken)]);
  }

  #answer(fields: Partial<InputAck>): void {
    this.stop();
    this.#unacknowledgedBytes = 0;
    this.#frames.send(InputAckSchema, {
      $typeName: 'grantty.internal.v1.InputAck',
      through: this.#through,
      taken: this.#channel.taken,
      failed: 0,
      ended: false,
      ...fields,
    });
  }
}
