/** The server's end of a control connection: calls by id, and what they are answered with. */
import { create, fromBinary, type MessageInitShape } from '@bufbuild/protobuf';
import type { GranttyError } from '../../core/errors.js';
import {
  type Reply,
  ReplySchema,
  RequestSchema,
} from '../../gen/internal/grantty/internal/v1/control_pb.js';
import type { TerminalKey } from '../api.js';
import { decodeFailure } from './failureCodec.js';
import type { FrameSocket } from './frameSocket.js';
import { decodeUnchanged, encodeGet, type Unchanged } from './getCodec.js';
import { PendingCalls } from './pendingCalls.js';
import { MAX_WAITING_BYTES, unavailable, unsound } from './protocol.js';
import { RecordMemory } from './recordMemory.js';

export type Call = NonNullable<MessageInitShape<typeof RequestSchema>['call']>;
export type Result = Exclude<Reply['result'], { case: 'failure' } | { case: undefined }>;

/** What each kind of result holds. */
export type Values = { readonly [R in Result as R['case']]: R['value'] };

/** Who hears the answers to one call. What `result` throws ends the connection. */
export interface Sink {
  /** True when more answers follow. */
  result(result: Result): boolean;
  /** Of a `get`: the one answer, where it is that. */
  unchanged?(seqs: Unchanged): void;
  failed(error: GranttyError): void;
}

/** Owns `frames`. */
export class ControlClient {
  /** Resolves when the connection is gone, once every call has failed. */
  readonly closed: Promise<Error | undefined>;
  readonly records = new RecordMemory();
  readonly #frames: FrameSocket;
  readonly #pending = new PendingCalls<Sink>();
  #heard = 0;
  #lost: GranttyError | undefined;

  constructor(frames: FrameSocket) {
    this.#frames = frames;
    frames.receive((body) => {
      const unchanged = decodeUnchanged(body);
      if (unchanged === undefined) this.#answer(fromBinary(ReplySchema, body));
      else this.#unchanged(unchanged);
    });
    this.closed = frames.closed.then((failure) => {
      this.#lost = unavailable('the connection to the supervisor was lost', failure);
      for (const sink of this.#pending.clear()) sink.failed(this.#lost);
      return failure;
    });
  }

  get isOpen(): boolean {
    return this.#lost === undefined;
  }

  /** Messages that have come so far. */
  get heard(): number {
    return this.#heard;
  }

  /** Every call that waits fails; without a reason, for no fault of the supervisor. */
  close(reason?: Error): void {
    this.#frames.destroy(reason);
  }

  /** The id by which the call can be cancelled. @throws SUPERVISOR_UNAVAILABLE */
  start(call: Call, sink: Sink): number {
    return this.#start(sink, (id) =>
      this.#frames.post(RequestSchema, create(RequestSchema, { id, call })),
    );
  }

  #start(sink: Sink, post: (id: number) => void): number {
    if (this.#lost) throw this.#lost;
    if (this.#frames.waitingBytes > MAX_WAITING_BYTES) {
      throw unavailable('the supervisor does not read what it is asked');
    }
    const id = this.#pending.add(sink);
    if (id === undefined) throw unavailable('too many calls wait for the supervisor');
    try {
      post(id);
    } catch (error) {
      this.#pending.delete(id);
      throw error;
    }
    return id;
  }

  /** Asks for the answer of one who has that revision of the record; 0: none. @throws as `start` */
  get(
    key: TerminalKey,
    known: number,
    answered: (answer: Result | Unchanged) => void,
    failed: (error: GranttyError) => void,
  ): void {
    const result = (answer: Result) => {
      answered(answer);
      return false;
    };
    this.#start({ result, failed, unchanged: answered }, (id) =>
      this.#frames.postBytes(encodeGet(id, key, known)),
    );
  }

  /** Its sink hears nothing more. */
  cancel(id: number): void {
    if (!this.#pending.delete(id)) return;
    this.#frames.post(
      RequestSchema,
      create(RequestSchema, { id, call: { case: 'cancel', value: {} } }),
    );
  }

  /** The one answer to a call. @throws what the supervisor threw, or the signal's reason when it fires */
  async call(call: Call, signal?: AbortSignal): Promise<Result> {
    if (signal === undefined) return new Promise((...settle) => this.#ask(call, ...settle));
    signal.throwIfAborted();
    let abort = () => {};
    try {
      return await new Promise<Result>((resolve, reject) => {
        const id = this.#ask(call, resolve, reject);
        abort = () => {
          this.cancel(id);
          reject(signal.reason);
        };
        signal.addEventListener('abort', abort, { once: true });
      });
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  #ask(call: Call, resolve: (result: Result) => void, failed: (error: unknown) => void): number {
    const result = (answer: Result) => {
      resolve(answer);
      return false;
    };
    return this.start(call, { result, failed });
  }

  /** The answers to a call, up to the `done` after the last. @throws what the supervisor threw */
  collect(call: Call): Promise<Result[]> {
    const results: Result[] = [];
    return new Promise((resolve, reject) => {
      this.start(call, {
        result: (result) => {
          if (result.case === 'done') resolve(results);
          else results.push(result);
          return result.case !== 'done';
        },
        failed: reject,
      });
    });
  }

  #unchanged(seqs: Unchanged): void {
    this.#heard += 1;
    const sink = this.#pending.get(seqs.id);
    if (!sink) return;
    if (!sink.unchanged) throw unsound('an answer to another call');
    this.#pending.delete(seqs.id);
    sink.unchanged(seqs);
  }

  #answer({ id, result }: Reply): void {
    this.#heard += 1;
    const sink = this.#pending.get(id);
    // A call that was cancelled while its answer was under way.
    if (!sink) return;
    if (result.case === undefined) throw unsound('an answer without a result');
    if (result.case === 'failure') {
      this.#pending.delete(id);
      sink.failed(decodeFailure(result.value));
    } else if (!sink.result(result)) this.#pending.delete(id);
  }
}
