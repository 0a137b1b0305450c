/** What grpc-js does not show of the HTTP/2 streams beneath its calls, and the server must see. */
import type { Http2Server, IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { Server } from '@grpc/grpc-js';
import { peerName } from './listener.js';

const AUTHORIZATION = 'authorization';

/**
 * Gives duplicated `authorization` headers back: Node.js keeps the first of a header that may stand
 * once only, so that two tokens would look like one. And tells `called` the peer of every call.
 *
 * To be used once the injector of `server` has been made: its HTTP/2 server is a private member, the
 * only one of grpc-js that is touched.
 */
export function observeStreams(server: Server, called: (peer: string) => void): void {
  const observe = (
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    _flags: number,
    rawHeaders: readonly string[],
  ): void => {
    const tokens = rawHeaders.filter(
      (_value, index) => index % 2 === 1 && rawHeaders[index - 1] === AUTHORIZATION,
    );
    if (tokens.length > 1) Object.assign(headers, { [AUTHORIZATION]: tokens });
    const socket = stream.session?.socket;
    if (socket) called(peerName(socket));
  };
  const http2Servers: unknown = Reflect.get(server, 'http2Servers');
  if (!(http2Servers instanceof Map)) throw new TypeError('grpc-js keeps its servers elsewhere');
  for (const http2Server of http2Servers.keys()) {
    (http2Server as Http2Server).prependListener('stream', observe);
  }
}
