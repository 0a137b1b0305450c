/**
 * The HTTP/2 streams beneath the calls: what grpc-js does not show of them and the server must see,
 * and which of them go by a shorter way than through grpc-js.
 */
import type {
  Http2Server,
  IncomingHttpHeaders,
  ServerHttp2Session,
  ServerHttp2Stream,
} from 'node:http2';
import type { Server } from '@grpc/grpc-js';
import { peerName } from './listener.js';
import { type Peer, peerOfSocket } from './peer.js';
import { takeUnaryCall, type UnaryMethod } from './unaryCall.js';

const AUTHORIZATION = 'authorization';

/** gRPC over HTTP/2: up to eight digits and a unit. In milliseconds. */
const TIMEOUT = /^(\d{1,8})([HMSmun])$/;
const UNITS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
};

/** The longest delay of a Node.js timer; a client that gives a call longer waits without an end. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** What is done with a stream of HTTP/2. */
type OnStream = (
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  flags: number,
  rawHeaders: readonly string[],
) => void;

/**
 * Gives duplicated `authorization` headers back: Node.js keeps the first of a header that may stand
 * once only, so that two tokens would look like one. Tells `called` the peer of a connection's first
 * call. Takes plain calls of `methods` itself; what asks for more than that is left to grpc-js, which
 * serves the same methods.
 *
 * To be used once the injector of `server` has been made: its HTTP/2 servers and its count of the
 * streams of a connection, without which that would be closed as idle, are the only private members
 * of grpc-js that are touched.
 */
export function observeStreams(
  server: Server,
  methods: ReadonlyMap<string, UnaryMethod>,
  called: (peer: string) => void,
): void {
  const http2Servers: unknown = Reflect.get(server, 'http2Servers');
  if (!(http2Servers instanceof Map)) throw new TypeError('grpc-js keeps its servers elsewhere');
  const opened: unknown = Reflect.get(server, 'onStreamOpened');
  if (typeof opened !== 'function') throw new TypeError('grpc-js counts its streams elsewhere');
  const peers = new WeakMap<ServerHttp2Session, Peer>();

  const peerOn = (session: ServerHttp2Session): Peer => {
    const known = peers.get(session);
    if (known) return known;
    const { socket } = session;
    called(peerName(socket));
    const peer = peerOfSocket(socket);
    peers.set(session, peer);
    return peer;
  };

  const observe = (toGrpc: OnStream): OnStream => {
    return (stream, headers, flags, rawHeaders) => {
      const { session } = stream;
      const peer =
        session && !session.destroyed ? peerOn(session as ServerHttp2Session) : undefined;
      const authorization = valuesOf(AUTHORIZATION, rawHeaders);
      const method = methods.get(headers[':path'] ?? '');
      const timeoutMs = timeoutOf(headers);
      if (method && peer && timeoutMs !== undefined && isPlain(headers)) {
        opened.call(server, stream);
        const start = { path: headers[':path'] ?? '', authorization, peer };
        takeUnaryCall(stream, method, timeoutMs === null ? start : { ...start, timeoutMs });
        return;
      }
      if (authorization.length > 1) Object.assign(headers, { [AUTHORIZATION]: authorization });
      toGrpc(stream, headers, flags, rawHeaders);
    };
  };

  for (const http2Server of http2Servers.keys()) {
    const { on, listeners, removeAllListeners } = http2Server as Http2Server;
    const [toGrpc] = listeners.call(http2Server, 'stream') as OnStream[];
    if (toGrpc === undefined) throw new TypeError('grpc-js takes its streams elsewhere');
    removeAllListeners.call(http2Server, 'stream');
    on.call(http2Server, 'stream', observe(toGrpc));
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

function isPlain(headers: IncomingHttpHeaders): boolean {
  const encoding = headers['grpc-encoding'];
  return (
    headers['content-type']?.startsWith('application/grpc') === true &&
    (encoding === undefined || encoding === 'identity')
  );
}

/** Milliseconds; null when the client gives none, undefined when it means nothing. */
function timeoutOf(headers: IncomingHttpHeaders): number | null | undefined {
  const given = headers['grpc-timeout'];
  if (given === undefined) return null;
  const [, digits, unit = ''] = TIMEOUT.exec(String(given)) ?? [];
  const factor = UNITS[unit];
  if (digits === undefined || factor === undefined) return undefined;
  const ms = Math.floor(Number(digits) * factor);
  return ms > MAX_DELAY_MS ? null : ms;
}
