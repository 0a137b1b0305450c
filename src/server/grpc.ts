/** The bridge from protobuf-es service descriptors to grpc-js: definitions and handlers. */
import type {
  DescMessage,
  DescMethod,
  DescService,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type {
  MethodDefinition,
  ServerDuplexStream,
  ServerUnaryCall,
  ServerWritableStream,
  ServiceDefinition,
  StatusObject,
  sendUnaryData,
  UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { AttachRequestSchema } from '../gen/public/grantty/v1/terminal_service_pb.js';
import { type Call, callOf, framesOf, type Incoming, malformed, malformedMessage } from './call.js';
import { readInputFrame } from './inputFrame.js';
import { Outlet } from './outlet.js';
import type { Peers } from './peer.js';

/** Resolves with the answer, or with its encoding. */
export type UnaryHandler<I extends DescMessage, O extends DescMessage> = (
  request: MessageShape<I>,
  call: Call,
) => Promise<MessageInitShape<O> | Uint8Array>;

/** Resolving ends the stream with OK, rejecting with the error's status. */
export type ServerStreamHandler<I extends DescMessage> = (
  request: MessageShape<I>,
  call: Call,
  out: Outlet,
) => Promise<void>;

/** As above. `frames` ends at the client's half-close, or with the call. */
export type BidiHandler<I extends DescMessage> = (
  frames: AsyncIterable<MessageShape<I>>,
  call: Call,
  out: Outlet,
) => Promise<void>;

type HandlerOf<M> = M extends {
  methodKind: infer K;
  input: infer I extends DescMessage;
  output: infer O extends DescMessage;
}
  ? K extends 'unary'
    ? UnaryHandler<I, O>
    : K extends 'server_streaming'
      ? ServerStreamHandler<I>
      : BidiHandler<I>
  : never;

/** Handlers of a service by the methods' local names; a method left out is not built yet. */
export type Handlers<S extends DescService> = {
  readonly [K in keyof S['method']]?: HandlerOf<S['method'][K]>;
};

/** What stands between every handler and the wire. */
export interface Boundary {
  readonly peers: Peers;
  /** Throws when no calls are taken any more. */
  accept(): void;
  /** Refuses a call without a valid token. Used where there is no handler to do it. */
  authenticate(call: Call): Promise<unknown>;
  /** The only way from something thrown to something sent. */
  status(error: unknown, call: Call): Partial<StatusObject>;
  /** The error for a method that this server does not have yet. */
  unimplemented(call: Call): unknown;
}

export function serviceDefinition(service: DescService): ServiceDefinition {
  return Object.fromEntries(
    service.methods.map((method) => [method.localName, methodDefinition(service, method)]),
  );
}

function methodDefinition(
  service: DescService,
  method: DescMethod,
): MethodDefinition<unknown, unknown> {
  return {
    path: `/${service.typeName}/${method.name}`,
    requestStream:
      method.methodKind === 'client_streaming' || method.methodKind === 'bidi_streaming',
    responseStream:
      method.methodKind === 'server_streaming' || method.methodKind === 'bidi_streaming',
    requestSerialize: encoder(method.input),
    responseDeserialize: (bytes) => fromBinary(method.output, bytes),
    requestDeserialize: decoder(method.input, quickReaders.get(method.input)),
    responseSerialize: encoder(method.output),
  };
}

type QuickReader = (bytes: Uint8Array) => unknown;

/** For messages that come by thousands a second: they answer undefined for all but the usual form. */
const quickReaders: ReadonlyMap<DescMessage, QuickReader> = new Map([
  [AttachRequestSchema, readInputFrame],
]);

/** Field 1, nine bytes: how an entry of a map begins whose key is `__proto__`. */
const PROTO_KEY = Buffer.from('\n\u0009__proto__');

/**
 * The runtime keeps maps in plain objects, where that key would be lost without a word. The same bytes
 * elsewhere in such a message are of no use either: no name, id or command begins like that.
 */
function decoder(
  schema: DescMessage,
  quickReader: QuickReader = () => undefined,
): (bytes: Uint8Array) => Incoming {
  const hasMaps = holdsMaps(schema);
  return (bytes) => {
    try {
      const message = quickReader(bytes);
      if (message !== undefined) return message;
      if (
        hasMaps &&
        Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes(PROTO_KEY)
      ) {
        return malformed;
      }
      return fromBinary(schema, bytes);
    } catch {
      return malformed;
    }
  };
}

function holdsMaps(schema: DescMessage): boolean {
  return schema.fields.some(
    (field) =>
      field.fieldKind === 'map' || (field.fieldKind === 'message' && holdsMaps(field.message)),
  );
}

/** Passes bytes through, so that one encoding serves many streams. */
function encoder(schema: DescMessage): (value: unknown) => Buffer {
  return (value) => {
    const bytes =
      value instanceof Uint8Array
        ? value
        : toBinary(schema, create(schema, value as MessageInitShape<DescMessage>));
    return Buffer.isBuffer(bytes)
      ? bytes
      : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  };
}

/** All methods of `service`, each wrapped so that nothing it throws reaches the wire unmapped. */
export function serviceHandlers<S extends DescService>(
  service: S,
  handlers: Handlers<S>,
  boundary: Boundary,
): UntypedServiceImplementation {
  const byName = handlers as Readonly<Record<string, unknown>>;
  return Object.fromEntries(
    service.methods.map((method) => {
      const handler = byName[method.localName];
      switch (method.methodKind) {
        case 'unary':
          return [method.localName, unary(handler as AnyUnary | undefined, boundary)];
        case 'server_streaming':
          return [method.localName, serverStream(handler as AnyServerStream | undefined, boundary)];
        default:
          return [method.localName, bidi(handler as AnyBidi | undefined, boundary)];
      }
    }),
  );
}

type AnyUnary = (request: unknown, call: Call) => Promise<unknown>;
type AnyServerStream = (request: unknown, call: Call, out: Outlet) => Promise<void>;
type AnyBidi = (frames: AsyncIterable<unknown>, call: Call, out: Outlet) => Promise<void>;

function unary(handler: AnyUnary | undefined, boundary: Boundary) {
  return (surface: ServerUnaryCall<Incoming, unknown>, respond: sendUnaryData<unknown>): void => {
    const call = callOf(surface, boundary.peers.of(surface));
    answer(handler, surface.request, call, boundary).then(
      (reply) => respond(null, reply),
      (error: unknown) => respond(boundary.status(error, call)),
    );
  };
}

/** Never throws: what a handler throws at once rejects as well. */
function answer(
  handler: AnyUnary | undefined,
  request: Incoming,
  call: Call,
  boundary: Boundary,
): Promise<unknown> {
  try {
    const run = admittedNow(handler, request, boundary);
    return run === undefined ? refused(handler, call, boundary) : run(request, call);
  } catch (error) {
    return Promise.reject(error);
  }
}

function serverStream(handler: AnyServerStream | undefined, boundary: Boundary) {
  return (surface: ServerWritableStream<Incoming, unknown>): void => {
    const call = callOf(surface, boundary.peers.of(surface));
    const serve = async () => {
      const run = await admitted(handler, surface.request, call, boundary);
      await run(surface.request, call, new Outlet(surface, call.signal));
    };
    endWith(serve(), surface, call, boundary);
  };
}

function bidi(handler: AnyBidi | undefined, boundary: Boundary) {
  return (surface: ServerDuplexStream<Incoming, unknown>): void => {
    const call = callOf(surface, boundary.peers.of(surface));
    const serve = async () => {
      const run = await admitted(handler, undefined, call, boundary);
      await run(framesOf(surface, call.signal), call, new Outlet(surface, call.signal));
    };
    endWith(serve(), surface, call, boundary);
  };
}

function endWith(
  served: Promise<void>,
  surface: ServerWritableStream<Incoming, unknown> | ServerDuplexStream<Incoming, unknown>,
  call: Call,
  boundary: Boundary,
): void {
  served.then(
    () => surface.end(),
    (error: unknown) => {
      const status = boundary.status(error, call);
      // grpc-js takes the status of a stream from the error that it emits.
      if (!call.signal.aborted) surface.emit('error', status);
    },
  );
}

async function admitted<H>(
  handler: H | undefined,
  request: Incoming,
  call: Call,
  boundary: Boundary,
): Promise<H> {
  return admittedNow(handler, request, boundary) ?? refused(handler, call, boundary);
}

/** The handler, where there is one and the message can be read. @throws when no calls are taken */
function admittedNow<H>(
  handler: H | undefined,
  request: Incoming,
  boundary: Boundary,
): H | undefined {
  boundary.accept();
  return request === malformed ? undefined : handler;
}

/** A valid token comes before the news that a method is missing or a message malformed. */
async function refused<H>(handler: H | undefined, call: Call, boundary: Boundary): Promise<never> {
  await boundary.authenticate(call);
  if (handler === undefined) throw boundary.unimplemented(call);
  throw malformedMessage();
}
