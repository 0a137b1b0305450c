/** TLS of the server's port. */
import { constants, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { ServerCredentials } from '@grpc/grpc-js';
import { MAX_METADATA_BYTES } from '../core/limits.js';

export interface TlsMaterial {
  /** PEM: the certificate, and the chain behind it. */
  readonly cert: Buffer;
  /** PEM. */
  readonly key: Buffer;
  /** PEM of authorities whose client certificates count; absent: clients are not asked for one. */
  readonly clientCa?: Buffer;
}

/**
 * TLS 1.2 or newer, client certificates welcome and not required, new material without a restart.
 * Of grpc-js's own credentials none can do all three, and none bounds the size of metadata.
 */
export class TlsCredentials extends ServerCredentials {
  constructor(material: TlsMaterial, maxConcurrentStreams: number) {
    super(
      {
        minVersion: 'TLSv1.2',
        honorCipherOrder: true,
        secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
        requestCert: material.clientCa !== undefined,
        // A certificate that does not verify is as good as none: a token bound to it is refused.
        rejectUnauthorized: false,
        settings: { maxHeaderListSize: MAX_METADATA_BYTES, maxConcurrentStreams },
      },
      contextOf(material),
    );
  }

  /** For connections that begin from now on. @throws when it is unsound; the old one stays then */
  replace(material: TlsMaterial): void {
    this.updateSecureContextOptions(contextOf(material));
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}

/** grpc-js takes anything, and then no connection comes about. @throws when it is unsound */
function contextOf({ cert, key, clientCa }: TlsMaterial) {
  createSecureContext({ cert, key });
  // Authorities that cannot be read would be passed over.
  if (clientCa) new X509Certificate(clientCa);
  return { cert, key, ...(clientCa && { ca: clientCa }) };
}
