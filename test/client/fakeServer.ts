/** A grpc-js server over TLS whose methods a test writes, made from the generated descriptors. */
import {
  create,
  type DescMessage,
  type DescService,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { anyPack, durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  Metadata,
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceError,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { makeDevelopmentCertificates } from '../../src/app/certificates.js';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from '../../src/gen/public/google/rpc/error_details_pb.js';
import { StatusSchema } from '../../src/gen/public/google/rpc/status_pb.js';
import {
  type AttachRequest,
  type AttachResponse,
  AttachResponseSchema,
  TerminalService,
  type WatchRequest,
  type WatchResponse,
  type WatchTerminalsRequest,
} from '../../src/gen/public/grantty/v1/terminal_service_pb.js';

export const certificates = makeDevelopmentCertificates({
  hosts: ['localhost', '127.0.0.1'],
  clientName: 'test',
  days: 1,
});

export type WatchCall = ServerWritableStream<WatchRequest, WatchResponse>;
export type AttachCall = ServerDuplexStream<AttachRequest, AttachResponse>;
export type UnaryHandler = (
  call: ServerUnaryCall<unknown, unknown>,
  callback: (error: Partial<ServiceError> | null, response?: unknown) => void,
) => void;

export interface Handlers {
  watch?: (call: WatchCall) => void;
  attach?: (call: AttachCall) => void;
  watchTerminals?: (call: ServerWritableStream<WatchTerminalsRequest, unknown>) => void;
  getTerminal?: UnaryHandler;
  write?: UnaryHandler;
}

export interface FakeServer extends AsyncDisposable {
  readonly address: string;
  /** Cuts every connection, as a crash does. */
  cut(): void;
}

/** Port 0: one that is free. */
export async function fakeServer(handlers: Handlers, port = 0): Promise<FakeServer> {
  const server = new Server();
  server.addService(definitionOf(TerminalService), handlers as UntypedServiceImplementation);
  const { cert, key } = certificates.server;
  const credentials = ServerCredentials.createSsl(null, [
    { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) },
  ]);
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${port}`, credentials, (error, got) =>
      error ? reject(error) : resolve(got),
    );
  });
  return {
    address: `127.0.0.1:${bound}`,
    cut: () => server.forceShutdown(),
    async [Symbol.asyncDispose]() {
      server.forceShutdown();
    },
  };
}

function definitionOf(service: DescService): Record<string, MethodDefinition<unknown, unknown>> {
  return Object.fromEntries(
    service.methods.map((method) => [
      method.localName,
      {
        path: `/${service.typeName}/${method.name}`,
        requestStream:
          method.methodKind === 'client_streaming' || method.methodKind === 'bidi_streaming',
        responseStream:
          method.methodKind === 'server_streaming' || method.methodKind === 'bidi_streaming',
        ...codec('request', method.input),
        ...codec('response', method.output),
      } as unknown as MethodDefinition<unknown, unknown>,
    ]),
  );
}

function codec(side: string, schema: DescMessage) {
  return {
    [`${side}Serialize`]: (message: MessageInitShape<DescMessage>) =>
      Buffer.from(toBinary(schema, create(schema, message))),
    [`${side}Deserialize`]: (bytes: Buffer): MessageShape<DescMessage> => fromBinary(schema, bytes),
  };
}

export interface FakeFailure {
  readonly code: status;
  readonly reason?: string;
  readonly metadata?: Record<string, string>;
  readonly field?: string;
  readonly retryAfterMs?: number;
}

/** An error as a grantty server sends it. */
export function failure(options: FakeFailure): ServiceError {
  const details = [];
  if (options.reason !== undefined) {
    const info = { domain: 'grantty', reason: options.reason, metadata: options.metadata ?? {} };
    details.push(anyPack(ErrorInfoSchema, create(ErrorInfoSchema, info)));
  }
  if (options.field !== undefined) {
    const violation = { field: options.field, description: 'is wrong' };
    const badRequest = create(BadRequestSchema, { fieldViolations: [violation] });
    details.push(anyPack(BadRequestSchema, badRequest));
  }
  if (options.retryAfterMs !== undefined) {
    const retry = create(RetryInfoSchema, { retryDelay: durationFromMs(options.retryAfterMs) });
    details.push(anyPack(RetryInfoSchema, retry));
  }
  const metadata = new Metadata();
  const packed = toBinary(StatusSchema, create(StatusSchema, { code: options.code, details }));
  metadata.set('grpc-status-details-bin', Buffer.from(packed));
  return Object.assign(new Error('it failed'), {
    code: options.code,
    details: 'it failed',
    metadata,
  });
}

export function tokenOf(call: { readonly metadata: Metadata }): string {
  return String(call.metadata.get('authorization')[0]).replace('Bearer ', '');
}

export { status };

/** A response of Watch or Attach. */
export function responseOf(event: MessageInitShape<typeof AttachResponseSchema>['event']) {
  return create(AttachResponseSchema, event ? { event } : {}) as AttachResponse & WatchResponse;
}
