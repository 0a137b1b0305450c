/** What grpc.health.v1 says of a server: asked once, or followed. Needs no token. */
import { ChannelCredentials, Client } from '@grpc/grpc-js';
import { service } from 'grpc-health-check';

export interface HealthClient extends Disposable {
  of(name: string): Promise<string>;
  /** Resolves when the service of that name is said to be `status`. */
  until(name: string, status: string): Promise<void>;
}

/** `ca`: PEM of the authority that signed the server's certificate. */
export function healthClient(address: string, ca: string | Buffer): HealthClient {
  const client = new Client(address, ChannelCredentials.createSsl(Buffer.from(ca)));
  const { Check, Watch } = service;
  if (!Check || !Watch) throw new Error('no health service');
  return {
    of: (name) =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest(
          Check.path,
          Check.requestSerialize,
          Check.responseDeserialize,
          { service: name },
          (error, reply) => (error ? reject(error) : resolve((reply as { status: string }).status)),
        );
      }),
    until: (name, status) =>
      new Promise((resolve, reject) => {
        const stream = client.makeServerStreamRequest(
          Watch.path,
          Watch.requestSerialize,
          Watch.responseDeserialize,
          { service: name },
        );
        stream.on('error', reject);
        stream.on('data', (reply: { status: string }) => {
          if (reply.status !== status) return;
          stream.off('error', reject).on('error', () => {});
          stream.cancel();
          resolve();
        });
      }),
    [Symbol.dispose]: () => client.close(),
  };
}
