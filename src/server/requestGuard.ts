/** Bounds what a peer may leave unfinished on its streams, and what it gets without a token. */
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { Ring } from '../core/ring.js';

/** Services for everybody: health and reflection. */
const TOKENLESS = '/grpc.';

/** Streams of such services on one connection; more are refused, so that they cannot be piled up. */
const MAX_TOKENLESS_STREAMS = 16;

interface Unfinished {
  readonly stream: ServerHttp2Stream;
  /** Of `performance.now()`. */
  readonly since: number;
  /** The client may take its time with its side of the stream. */
  readonly isOpenEnded: boolean;
}

export class RequestGuard implements Disposable {
  readonly #unfinished = new Ring<Unfinished>();
  readonly #tokenless = new WeakMap<object, number>();
  readonly #timer: NodeJS.Timeout;

  /**
   * A request has `requestMs` to be there whole, and a stream that was answered as long to be closed
   * by the client; then it is reset.
   */
  constructor(
    private readonly requestMs: number,
    private readonly isOpenEnded: (path: string) => boolean,
  ) {
    // What has arrived is read before it is judged, also where the process was held up.
    this.#timer = setInterval(() => setImmediate(() => this.#sweep()), requestMs / 4).unref();
  }

  /** To be called with each new stream, before anybody else looks at it. */
  began(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    refuseCompression(headers);
    const path = headers[':path'] ?? '';
    if (path.startsWith(TOKENLESS)) this.#countTokenless(stream);
    const link = this.#unfinished.add({
      stream,
      since: performance.now(),
      isOpenEnded: this.isOpenEnded(path),
    });
    stream.once('close', () => link.remove());
  }

  #countTokenless(stream: ServerHttp2Stream): void {
    const { session } = stream;
    if (session === undefined) return;
    const count = (this.#tokenless.get(session) ?? 0) + 1;
    this.#tokenless.set(session, count);
    stream.once('close', () => {
      this.#tokenless.set(session, (this.#tokenless.get(session) ?? 1) - 1);
    });
    if (count > MAX_TOKENLESS_STREAMS) stream.close(constants.NGHTTP2_REFUSED_STREAM);
  }

  #sweep(): void {
    const due = performance.now() - this.requestMs;
    for (const { stream, since, isOpenEnded } of this.#unfinished) {
      // In the order in which they began.
      if (since > due) return;
      if (stream.readableEnded) continue;
      if (stream.writableEnded) stream.close(constants.NGHTTP2_NO_ERROR);
      else if (!isOpenEnded) stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

/**
 * A few bytes of gzip may stand for 256 KiB, and grpc-js unpacks all that has arrived before anybody
 * has asked for a token. Under an encoding that it does not know it answers UNIMPLEMENTED, as gRPC
 * has it for a compression that a server does not take.
 */
function refuseCompression(headers: IncomingHttpHeaders): void {
  const encoding = headers['grpc-encoding'];
  if (encoding === undefined || encoding === 'identity') return;
  Object.assign(headers, { 'grpc-encoding': 'compressed requests are not taken' });
}
