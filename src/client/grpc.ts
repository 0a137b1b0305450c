/** Calls protobuf-es services over grpc-js: promises for unary calls, async iterables for streams. */
import { setTimeout as delay } from 'node:timers/promises';
import {
  create,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { type Client, type CallOptions as GrpcCallOptions, Metadata, status } from '@grpc/grpc-js';
import { CallError, failureOf, StatusError } from './failure.js';
import { LinkedSignal } from './linkedSignal.js';

export interface CallOptions {
  /** Cancels the call; it then fails with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Milliseconds until the call fails with DEADLINE_EXCEEDED. Absent: it waits as long as it takes. */
  readonly timeoutMs?: number;
  /** Sent instead of what the connection's token source gives. */
  readonly token?: string;
}

/** A bidirectional stream that is open. Responses are pulled: who does not iterate holds the server back. */
export interface DuplexCall<I extends DescMessage, O extends DescMessage> {
  /** To be iterated once. Leaving the loop cancels the call. */
  readonly responses: AsyncIterable<MessageShape<O>>;
  /** Resolves when the transport has room for another message; at once when the call is over. */
  send(request: MessageInitShape<I>): Promise<void>;
  halfClose(): void;
  cancel(): void;
}

/** A request as a plain object literal. */
export type Init<D extends DescMessage> = Exclude<MessageInitShape<D>, { $typeName: string }>;

type UnaryMethod<I extends DescMessage, O extends DescMessage> = (
  request: MessageInitShape<I>,
  options?: CallOptions,
) => Promise<MessageShape<O>>;

type StreamingMethod<I extends DescMessage, O extends DescMessage> = (
  request: MessageInitShape<I>,
  options?: CallOptions,
) => AsyncIterable<MessageShape<O>>;

type DuplexMethod<I extends DescMessage, O extends DescMessage> = (
  options?: CallOptions,
) => Promise<DuplexCall<I, O>>;

type Shape<M> = M extends {
  methodKind: infer K;
  input: infer I extends DescMessage;
  output: infer O extends DescMessage;
}
  ? K extends 'unary'
    ? UnaryMethod<I, O>
    : K extends 'server_streaming'
      ? StreamingMethod<I, O>
      : K extends 'bidi_streaming'
        ? DuplexMethod<I, O>
        : never
  : never;

/** One function for each method of the service, typed by its generated descriptor. */
export type ServiceClient<S extends DescService> = {
  readonly [K in keyof S['method']]: Shape<S['method'][K]>;
};

/** What a call needs besides its method: a connection, which is TLS always, and the bearer token. */
export interface Channel {
  readonly client: Client;
  readonly token: () => Promise<string>;
  /** Aborted when the connection is closed: cancels calls, as their own signals do. */
  readonly closed: AbortSignal;
}

export function serviceClient<S extends DescService>(
  channel: Channel,
  service: S,
): ServiceClient<S> {
  const methods = service.methods.map((method) => [method.localName, callable(channel, method)]);
  // The loop gives each method the function of its kind, which is what the mapped type says.
  return Object.fromEntries(methods) as ServiceClient<S>;
}

type AnyMethod =
  | UnaryMethod<DescMessage, DescMessage>
  | StreamingMethod<DescMessage, DescMessage>
  | DuplexMethod<DescMessage, DescMessage>;

function callable(channel: Channel, method: DescMethod): AnyMethod {
  switch (method.methodKind) {
    case 'unary':
      return (request, options) => unary(channel, method, request, options);
    case 'server_streaming':
      return (request, options) => serverStream(channel, method, request, options);
    case 'bidi_streaming':
      return (options?: CallOptions) => duplex(channel, method, options);
    case 'client_streaming':
      throw new TypeError(`${method.name}: client streaming is not part of the contract`);
  }
}

/** Times that a call goes out again because its connection broke, and milliseconds before each. */
const MAX_LOSSES = 3;
const AFTER_LOSS_MS = 100;

/**
 * A call that may be sent twice goes out again when the server, or an old connection, sends it away: as
 * often as that happens within its time. And a few times when its connection breaks under it.
 */
async function unary<I extends DescMessage, O extends DescMessage>(
  channel: Channel,
  method: DescMethod & { input: I; output: O },
  request: MessageInitShape<I>,
  options: CallOptions = {},
): Promise<MessageShape<O>> {
  const bounded = { ...options, ...grpcOptions(options) };
  for (let losses = 0; ; ) {
    try {
      return await unaryOnce(channel, method, request, bounded);
    } catch (failure) {
      if (!isRepeatable(method, request)) throw failure;
      if (failure instanceof StatusError && failure.connectionLost) losses += 1;
      else if (!isSentAway(failure)) throw failure;
      if (losses > MAX_LOSSES) throw failure;
      const ms = isSentAway(failure) ? failure.retryAfterMs : AFTER_LOSS_MS;
      using linked = new LinkedSignal([options.signal, channel.closed]);
      await delay(ms, undefined, { signal: linked.signal }).catch(() => {});
    }
  }
}

function isSentAway(failure: unknown): failure is CallError & { readonly retryAfterMs: number } {
  return (
    failure instanceof CallError &&
    failure.reason === 'SERVER_DRAINING' &&
    failure.retryAfterMs !== undefined
  );
}

function isRepeatable(method: DescMethod, request: object): boolean {
  if (method.idempotency !== MethodOptions_IdempotencyLevel.IDEMPOTENCY_UNKNOWN) return true;
  return (
    'requestId' in request && typeof request.requestId === 'string' && request.requestId !== ''
  );
}

/** `deadline` is in milliseconds since the Unix epoch. */
async function unaryOnce<I extends DescMessage, O extends DescMessage>(
  channel: Channel,
  method: DescMethod & { input: I; output: O },
  request: MessageInitShape<I>,
  options: CallOptions & GrpcCallOptions,
): Promise<MessageShape<O>> {
  using linked = new LinkedSignal([options.signal, channel.closed]);
  const { signal } = linked;
  const metadata = await authorization(channel, options);
  signal.throwIfAborted();
  return await new Promise((resolve, reject) => {
    const call = channel.client.makeUnaryRequest<MessageInitShape<I>, MessageShape<O>>(
      pathOf(method),
      serializer(method.input),
      deserializer(method.output),
      request,
      metadata,
      options.deadline === undefined ? {} : { deadline: options.deadline },
      (error, response) => {
        if (signal.aborted) reject(signal.reason);
        else if (error) reject(failureOf(error));
        else if (response) resolve(response);
        else reject(failureOf({ code: status.INTERNAL, details: 'the response is missing' }));
      },
    );
    signal.addEventListener('abort', () => call.cancel());
  });
}

async function* serverStream<I extends DescMessage, O extends DescMessage>(
  channel: Channel,
  method: DescMethod & { input: I; output: O },
  request: MessageInitShape<I>,
  options: CallOptions = {},
): AsyncGenerator<MessageShape<O>, void, undefined> {
  using linked = new LinkedSignal([options.signal, channel.closed]);
  const metadata = await authorization(channel, options);
  linked.signal.throwIfAborted();
  const call = channel.client.makeServerStreamRequest<MessageInitShape<I>, MessageShape<O>>(
    pathOf(method),
    serializer(method.input),
    deserializer(method.output),
    request,
    metadata,
    grpcOptions(options),
  );
  yield* new Responses(call, linked.signal);
}

async function duplex<I extends DescMessage, O extends DescMessage>(
  channel: Channel,
  method: DescMethod & { input: I; output: O },
  options: CallOptions = {},
): Promise<DuplexCall<I, O>> {
  const linked = new LinkedSignal([options.signal, channel.closed]);
  const metadata = await authorization(channel, options);
  linked.signal.throwIfAborted();
  const call = channel.client.makeBidiStreamRequest<MessageInitShape<I>, MessageShape<O>>(
    pathOf(method),
    serializer(method.input),
    deserializer(method.output),
    metadata,
    grpcOptions(options),
  );
  const responses = new Responses<MessageShape<O>>(call, linked.signal);
  void responses.ended.then(() => linked[Symbol.dispose]());
  return {
    responses,
    async send(request) {
      if (responses.over || call.write(request)) return;
      const { promise, resolve } = withResolvers();
      call.once('drain', resolve);
      await Promise.race([promise, responses.ended]);
      call.off('drain', resolve);
    },
    halfClose: () => call.end(),
    cancel: () => call.cancel(),
  };
}

/** The parts of grpc-js's readable calls that are used. */
interface ReadableCall<O> extends AsyncIterable<O> {
  on(event: 'status', listener: (status: CallStatus) => void): unknown;
  on(event: 'error', listener: (error: unknown) => void): unknown;
  cancel(): void;
}

interface CallStatus {
  readonly code: status;
  readonly details: string;
  readonly metadata: Metadata;
}

/**
 * The responses of one call. What arrived before a failure is given before the failure is thrown.
 * The status is listened for from the start: a call may fail before it is iterated.
 */
class Responses<O> implements AsyncIterable<O> {
  over = false;
  readonly ended: Promise<void>;
  #status: CallStatus | undefined;

  constructor(
    private readonly call: ReadableCall<O>,
    private readonly signal: AbortSignal,
  ) {
    const { promise, resolve } = withResolvers();
    this.ended = promise;
    signal.addEventListener('abort', () => call.cancel());
    call.on('status', (received) => {
      this.#status = received;
      this.over = true;
      resolve();
    });
    // The status says the same, and without a listener the process would end.
    call.on('error', () => {});
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<O, void, undefined> {
    try {
      yield* this.call;
    } catch (error) {
      // grpc-js reports a failed call as an error and as a status; others are defects.
      if (!this.over) throw error;
    } finally {
      this.call.cancel();
    }
    await this.ended;
    this.signal.throwIfAborted();
    if (this.#status && this.#status.code !== status.OK) throw failureOf(this.#status);
  }
}

async function authorization(channel: Channel, options: CallOptions): Promise<Metadata> {
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${options.token ?? (await channel.token())}`);
  return metadata;
}

function grpcOptions(options: CallOptions): GrpcCallOptions {
  return options.timeoutMs === undefined ? {} : { deadline: Date.now() + options.timeoutMs };
}

function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

function serializer<D extends DescMessage>(schema: D): (message: MessageInitShape<D>) => Buffer {
  return (message) => {
    const bytes = toBinary(schema, create(schema, message));
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  };
}

function deserializer<D extends DescMessage>(schema: D): (bytes: Buffer) => MessageShape<D> {
  return (bytes) => fromBinary(schema, bytes);
}

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((fulfil) => {
    resolve = fulfil;
  });
  return { promise, resolve };
}
