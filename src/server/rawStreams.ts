/** What grpc-js does not show of the HTTP/2 sessions and streams beneath its calls. */
import type {
  Http2Server,
  Http2Session,
  IncomingHttpHeaders,
  ServerHttp2Session,
  ServerHttp2Stream,
} from 'node:http2';
import type { Server } from '@grpc/grpc-js';
import { peerName } from './listener.js';

const AUTHORIZATION = 'authorization';

export interface Observer {
  /** The peer of each connection, when its first call comes. */
  readonly called: (peer: string) => void;
  /** Every connection, once it speaks HTTP/2. */
  readonly connected: (session: ServerHttp2Session) => void;
  /** Every stream, before grpc-js looks at it. */
  readonly began: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;
}

/**
 * Tells the observer, and gives duplicated `authorization` headers back: Node.js keeps the first of a
 * header that may stand once only, so that two tokens would look like one.
 *
 * To be used once the injector of `server` has been made: its HTTP/2 server is a private member, the
 * only one of grpc-js that is touched.
 */
export function observeStreams(server: Server, { called, connected, began }: Observer): void {
  const heard = new WeakSet<Http2Session>();
  const observe = (
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    _flags: number,
    rawHeaders: readonly string[],
  ): void => {
    const tokens = valuesOf(AUTHORIZATION, rawHeaders);
    if (tokens.length > 1) Object.assign(headers, { [AUTHORIZATION]: tokens });
    const { session } = stream;
    if (session && !heard.has(session)) {
      heard.add(session);
      called(peerName(session.socket));
    }
    began(stream, headers);
  };
  const http2Servers: unknown = Reflect.get(server, 'http2Servers');
  if (!(http2Servers instanceof Map)) throw new TypeError('grpc-js keeps its servers elsewhere');
  for (const http2Server of http2Servers.keys()) {
    (http2Server as Http2Server).prependListener('stream', observe).on('session', connected);
  }
}

function valuesOf(name: string, rawHeaders: readonly string[]): readonly string[] {
  const values: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const value = rawHeaders[at + 1];
    if (rawHeaders[at] === name && value !== undefined) values.push(value);
  }
  return values;
}
