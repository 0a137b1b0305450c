/**
 * One unary call taken from HTTP/2 itself, as gRPC over HTTP/2 has it. grpc-js's own way through such
 * a call costs more than everything that is decided about it.
 */
import type { OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { Metadata, status as StatusCode, type StatusObject } from '@grpc/grpc-js';
import { LateSignal } from '../core/lateSignal.js';
import { MAX_MESSAGE_BYTES } from '../core/limits.js';
import { type Call, callIsOver } from './call.js';
import type { Peer } from './peer.js';

export interface UnaryMethod {
  /** Resolves with the encoded answer to an encoded request. */
  answer(message: Uint8Array, call: Call): Promise<Uint8Array>;
  /** What to tell of whatever `answer` threw. */
  status(error: unknown, call: Call): Partial<StatusObject>;
}

export interface UnaryStart {
  readonly path: string;
  readonly authorization: readonly string[];
  readonly peer: Peer;
  /** Milliseconds that the client gives it. */
  readonly timeoutMs?: number;
}

/** Before each message: whether it is compressed, then its length. */
const PREFIX_BYTES = 5;

const HEADERS: OutgoingHttpHeaders = {
  ':status': 200,
  'content-type': 'application/grpc+proto',
  // Of a request; the few compressed ones go another way.
  'grpc-accept-encoding': 'identity,deflate,gzip',
};
const THEN_TRAILERS = { waitForTrailers: true };
const AND_NO_MORE = { endStream: true };
const TRAILERS: OutgoingHttpHeaders = { 'grpc-status': '0' };

/** Takes the call over: reads its one message, answers, and is done when the stream is closed. */
export function takeUnaryCall(
  stream: ServerHttp2Stream,
  method: UnaryMethod,
  start: UnaryStart,
): void {
  new UnaryCall(stream, method, start);
}

class UnaryCall implements Call {
  readonly path: string;
  readonly authorization: readonly string[];
  readonly peer: Peer;
  readonly #over = new LateSignal();
  #received: Buffer | undefined;
  #deadline: NodeJS.Timeout | undefined;

  constructor(
    private readonly stream: ServerHttp2Stream,
    private readonly method: UnaryMethod,
    { path, authorization, peer, timeoutMs }: UnaryStart,
  ) {
    this.path = path;
    this.authorization = authorization;
    this.peer = peer;
    // A reset; `close` follows.
    stream.on('error', () => {});
    stream.once('close', () => this.#end());
    stream.on('data', (chunk: Buffer) => this.#receive(chunk));
    stream.once('end', () => this.#run());
    if (timeoutMs === undefined) return;
    this.#deadline = setTimeout(
      () =>
        this.#refuse({ code: StatusCode.DEADLINE_EXCEEDED, details: 'the deadline has passed' }),
      timeoutMs,
    );
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  #receive(chunk: Buffer): void {
    if (this.#over.aborted) return;
    const received = this.#received ? Buffer.concat([this.#received, chunk]) : chunk;
    this.#received = received;
    if (received.length < PREFIX_BYTES) return;
    const length = received.readUInt32BE(1);
    if (length > MAX_MESSAGE_BYTES) {
      const details = `a message of ${length} bytes is larger than ${MAX_MESSAGE_BYTES}`;
      this.#refuse({ code: StatusCode.RESOURCE_EXHAUSTED, details });
    } else if (received.length > PREFIX_BYTES + length) this.#refuse(notOne);
  }

  #run(): void {
    if (this.#over.aborted) return;
    const received = this.#received ?? Buffer.alloc(0);
    const isWhole =
      received.length >= PREFIX_BYTES &&
      received.length === PREFIX_BYTES + received.readUInt32BE(1);
    if (!isWhole) {
      this.#refuse(notOne);
      return;
    }
    if (received[0] !== 0) {
      this.#refuse(compressed);
      return;
    }
    this.method.answer(received.subarray(PREFIX_BYTES), this).then(
      (message) => this.#answer(message),
      (error: unknown) => this.#refuse(this.method.status(error, this)),
    );
  }

  #answer(message: Uint8Array): void {
    if (!this.#end()) return;
    const framed = Buffer.allocUnsafe(PREFIX_BYTES + message.length);
    framed[0] = 0;
    framed.writeUInt32BE(message.length, 1);
    framed.set(message, PREFIX_BYTES);
    const { stream } = this;
    stream.respond(HEADERS, THEN_TRAILERS);
    stream.once('wantTrailers', () => stream.sendTrailers(TRAILERS));
    stream.end(framed);
  }

  #refuse({ code = StatusCode.UNKNOWN, details = '', metadata }: Partial<StatusObject>): void {
    if (!this.#end()) return;
    const told = { 'grpc-status': code, 'grpc-message': encodeURI(details) };
    const more = (metadata ?? new Metadata()).toHttp2Headers();
    this.stream.respond({ ...HEADERS, ...told, ...more }, AND_NO_MORE);
    // What the client still sends is taken, and not looked at.
    this.stream.resume();
  }

  /** True for the first who ends it, while there is somebody to tell. */
  #end(): boolean {
    if (this.#over.aborted) return false;
    clearTimeout(this.#deadline);
    this.#over.abort(callIsOver);
    return !this.stream.closed && !this.stream.destroyed;
  }
}

const notOne = { code: StatusCode.UNIMPLEMENTED, details: 'the call takes exactly one message' };
const compressed = {
  code: StatusCode.INTERNAL,
  details: 'a compressed message in a call that names no compression',
};
