/** The server's end of an input connection: one attachment's way in. */
import { create } from '@bufbuild/protobuf';
import { GranttyError } from '../../core/errors.js';
import { MAX_INPUT_QUEUE_BYTES } from '../../core/limits.js';
import type { Attached } from '../../gen/internal/grantty/internal/v1/connection_pb.js';
import {
  type InputAck,
  InputChunkSchema,
} from '../../gen/internal/grantty/internal/v1/input_pb.js';
import type { InputChannel, Lease } from '../api.js';
import { decodeFailure } from './failureCodec.js';
import type { FrameSocket } from './frameSocket.js';
import { decodeAck, encodeChunk } from './inputCodec.js';
import { unavailable } from './protocol.js';

/** Bytes that a chunk counts for on top of its data, so that many small ones are bounded too. */
const CHUNK_OVERHEAD_BYTES = 64;

interface Unsettled {
  readonly bytes: number;
  readonly resolve: (taken: number) => void;
  readonly reject: (error: unknown) => void;
}

/** Owns `frames`. */
export class SocketInput implements InputChannel {
  readonly attachmentId: string;
  readonly resumed: boolean;
  readonly #frames: FrameSocket;
  #taken: number;
  #sent = 0;
  /** From chunk `#oldest` on, which is there unless all are settled; those settled early are empty. */
  readonly #unsettled: (Unsettled | undefined)[] = [];
  #oldest = 1;
  #unsettledBytes = 0;
  #lost: GranttyError | undefined;
  #ended: Promise<void> | undefined;
  #markEnded = () => {};

  constructor(frames: FrameSocket, { attachmentId, resumed, taken }: Attached) {
    this.attachmentId = attachmentId;
    this.resumed = resumed;
    this.#taken = taken;
    this.#frames = frames;
    frames.receive((body) => this.#settle(decodeAck(body)));
    void frames.closed.then((failure) => this.#lose(failure));
  }

  get taken(): number {
    return this.#taken;
  }

  send(data: Uint8Array, lease: Lease): Promise<number> {
    return new Promise((resolve, reject) => {
      if (this.#lost) throw this.#lost;
      if (this.#ended) throw unavailable('the attachment has ended');
      const bytes = data.length + CHUNK_OVERHEAD_BYTES;
      if (this.#unsettledBytes + bytes > MAX_INPUT_QUEUE_BYTES) throw full();
      const number = this.#sent + 1;
      this.#frames.sendParts(encodeChunk(number, data, lease));
      this.#sent = number;
      this.#unsettled.push({ bytes, resolve, reject });
      this.#unsettledBytes += bytes;
    });
  }

  /** Resolves when the attachment has ended; what was queued has failed, or does so right after. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#ended ??= new Promise((resolve) => {
      this.#markEnded = resolve;
      if (this.#lost) resolve();
      else this.#frames.send(InputChunkSchema, create(InputChunkSchema, { end: true }));
    });
    return this.#ended;
  }

  #settle({ through, taken, failed, failure, ended }: InputAck): void {
    this.#taken = taken;
    if (failure) this.#take(failed)?.reject(decodeFailure(failure));
    while (this.#unsettled.length > 0 && this.#oldest <= through) {
      this.#take(this.#oldest)?.resolve(taken);
    }
    if (ended) this.#markEnded();
  }

  #take(number: number): Unsettled | undefined {
    const index = number - this.#oldest;
    const chunk = this.#unsettled[index];
    if (!chunk) return undefined;
    this.#unsettled[index] = undefined;
    while (this.#unsettled.length > 0 && !this.#unsettled[0]) {
      this.#unsettled.shift();
      this.#oldest += 1;
    }
    this.#unsettledBytes -= chunk.bytes;
    return chunk;
  }

  #lose(failure: Error | undefined): void {
    this.#lost = unavailable('the connection to the supervisor was lost', failure);
    for (const chunk of this.#unsettled.splice(0)) chunk?.reject(this.#lost);
    this.#unsettledBytes = 0;
    this.#markEnded();
  }
}

function full(): GranttyError {
  return new GranttyError(
    'INPUT_QUEUE_FULL',
    'the program does not read its input, and as much as may wait does; send less or later',
    { retryAfterMs: 1000 },
  );
}
