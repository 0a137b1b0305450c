/** Who is at the other end of a call's connection, as far as decisions and their records need it. */
import type { Http2Session } from 'node:http2';
import type { ServerUnaryCall } from '@grpc/grpc-js';
import { certificateThumbprint } from '../auth/proof.js';
import { peerName } from './listener.js';

export interface Peer {
  /** IP address without port, or `unix`. */
  readonly address: string;
  /** Address and port: which connection it is, while that lasts. */
  readonly connection: string;
  readonly certificate?: PeerCertificate;
}

export interface PeerCertificate {
  /** `x5t#S256` of RFC 8705. */
  readonly thumbprint: string;
  /** Milliseconds since the Unix epoch. */
  readonly notAfter: number;
}

type CallOfPeer = Pick<ServerUnaryCall<unknown, unknown>, 'getPeer' | 'getAuthContext'>;

/**
 * The peers of connections that are open, each looked at once: nothing of it changes, and to read a
 * certificate takes 20 µs, as much as the rest of a decision.
 */
export class Peers {
  /** By the peer's address and port; without a peer until its first call. */
  readonly #open = new Map<string, { peer?: Peer }>();

  /** To be called when a connection speaks HTTP/2. */
  connected(session: Http2Session): void {
    const { socket } = session;
    if (socket?.remotePort === undefined) return;
    const name = peerName(socket);
    const entry = {};
    this.#open.set(name, entry);
    session.once('close', () => {
      // The name may be another connection's by now.
      if (this.#open.get(name) === entry) this.#open.delete(name);
    });
  }

  /** Must be asked at the start of a call: grpc-js forgets it once the call is cancelled. */
  of(call: CallOfPeer): Peer {
    const name = call.getPeer();
    const entry = this.#open.get(name);
    if (entry === undefined) return peerOf(call, name);
    entry.peer ??= peerOf(call, name);
    return entry.peer;
  }
}

function peerOf(call: CallOfPeer, connection: string): Peer {
  const address = withoutPort(connection);
  const certificate = call.getAuthContext().sslPeerCertificate;
  if (!certificate) return { address, connection };
  return {
    address,
    connection,
    certificate: {
      thumbprint: certificateThumbprint(certificate.raw),
      notAfter: Date.parse(certificate.valid_to),
    },
  };
}

function withoutPort(peer: string): string {
  const colon = peer.lastIndexOf(':');
  return colon < 0 ? 'unix' : peer.slice(0, colon);
}
