/** One call as its handler sees it: who calls, whether it is over, and what the client sends. */
import type { EventEmitter } from 'node:events';
import type { Readable } from 'node:stream';
import type { ServerDuplexStream, ServerUnaryCall, ServerWritableStream } from '@grpc/grpc-js';
import { fieldInvalid } from '../core/errors.js';
import { LateSignal } from '../core/lateSignal.js';
import type { Peer } from './peer.js';
import { Cancelled } from './status.js';

/** What a handler knows of its call beside the messages. */
export interface Call {
  /** `/package.Service/Method`. */
  readonly path: string;
  /** The values of its `authorization` header; every one, so that two are not taken for one. */
  readonly authorization: readonly string[];
  readonly peer: Peer;
  /** Aborts when the call is over: answered, cancelled, past its deadline, or its connection lost. */
  readonly signal: AbortSignal;
}

/** Why the signal of a call fires. */
export const callIsOver = new Cancelled();

/** Stands for a message that could not be decoded: grpc-js would answer a throwing decoder with INTERNAL. */
export const malformed = Symbol('malformed message');

export type Incoming = unknown | typeof malformed;

export function malformedMessage(): Error {
  return fieldInvalid(
    'request',
    'is no valid message of its type; in its maps the key "__proto__" is none',
  );
}

type Surface =
  | ServerUnaryCall<Incoming, unknown>
  | ServerWritableStream<Incoming, unknown>
  | ServerDuplexStream<Incoming, unknown>;

export function callOf(surface: Surface, peer: Peer): Call {
  return new SurfaceCall(surface, peer);
}

class SurfaceCall implements Call {
  readonly path: string;
  readonly authorization: readonly string[];
  readonly #over = new LateSignal();

  constructor(
    surface: Surface,
    readonly peer: Peer,
  ) {
    this.path = surface.getPath();
    this.authorization = surface.metadata.get('authorization').map(String);
    // grpc-js says `cancelled` at every end of a call, the good ones included.
    const events: EventEmitter = surface;
    events.once('cancelled', () => this.#over.abort(callIsOver));
    if (surface.cancelled) this.#over.abort(callIsOver);
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }
}

/**
 * The client's frames one by one; the next is read from HTTP/2 when it is asked for, but for what
 * grpc-js reads ahead (16 messages). Ends with the client's half-close or the call. Not the stream's
 * own iterator: that one destroys the stream on the error that grpc-js takes the status from.
 */
export async function* framesOf(
  surface: ServerDuplexStream<Incoming, unknown>,
  signal: AbortSignal,
): AsyncGenerator<unknown, void, undefined> {
  const source: Readable = surface;
  let wake = () => {};
  const tell = () => wake();
  source.on('readable', tell);
  source.on('end', tell);
  signal.addEventListener('abort', tell, { once: true });
  while (!signal.aborted) {
    const frame: unknown = source.read();
    if (frame === malformed) throw malformedMessage();
    if (frame !== null) {
      yield frame;
      continue;
    }
    if (source.readableEnded) return;
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  }
}
