/** Who is at the other end of a call's connection, as far as decisions and their records need it. */
import type { ServerUnaryCall } from '@grpc/grpc-js';
import { certificateThumbprint } from '../auth/proof.js';

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

/** Must be taken at the start of a call: grpc-js forgets it once the call is cancelled. */
export function peerOf(
  call: Pick<ServerUnaryCall<unknown, unknown>, 'getPeer' | 'getAuthContext'>,
): Peer {
  const connection = call.getPeer();
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
