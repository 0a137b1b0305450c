/** TLS of the server's port. */
import { constants } from 'node:crypto';
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

  /** For connections that begin from now on. */
  replace(material: TlsMaterial): void {
    this.updateSecureContextOptions(contextOf(material));
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}

function contextOf({ cert, key, clientCa }: TlsMaterial) {
  return { cert, key, ...(clientCa && { ca: clientCa }) };
}
