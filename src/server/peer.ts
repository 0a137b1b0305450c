/** Who is at the other end of a call's connection, as far as decisions and their records need it. */
import type { Socket } from 'node:net';
import { type PeerCertificate as PeerCertificateOfTls, TLSSocket } from 'node:tls';
import type { ServerUnaryCall } from '@grpc/grpc-js';
import { certificateThumbprint } from '../auth/proof.js';

export interface Peer {
  /** IP address without port, or `unix`. */
  readonly address: string;
  readonly certificate?: PeerCertificate;
}

export interface PeerCertificate {
  /** `x5t#S256` of RFC 8705. */
  readonly thumbprint: string;
  /** Milliseconds since the Unix epoch. */
  readonly notAfter: number;
}

/** Must be taken at the start of a call: grpc-js forgets it once the call is cancelled. */
export function peerOf(
  call: Pick<ServerUnaryCall<unknown, unknown>, 'getPeer' | 'getAuthContext'>,
): Peer {
  return peerWith(withoutPort(call.getPeer()), call.getAuthContext().sslPeerCertificate);
}

/** The same of the connection, for all its calls: neither address nor certificate changes on it. */
export function peerOfSocket(socket: Socket): Peer {
  const { remoteAddress = 'unix' } = socket;
  // One that does not verify counts for none; without one there is an object without members.
  const isProven = socket instanceof TLSSocket && socket.authorized;
  const certificate = isProven ? socket.getPeerCertificate() : undefined;
  return peerWith(remoteAddress, certificate?.raw ? certificate : undefined);
}

function peerWith(
  address: string,
  certificate: Pick<PeerCertificateOfTls, 'raw' | 'valid_to'> | undefined,
): Peer {
  if (!certificate) return { address };
  return {
    address,
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
