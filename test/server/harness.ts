/** A server on loopback over a fake supervisor, and a bare gRPC client to it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DescMessage, DescMethod, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  credentials,
  Metadata,
  type ServiceError,
} from '@grpc/grpc-js';
import { pino } from 'pino';
import { openSessions, type Sessions } from '../../src/app/sessions.js';
import type { IntentRecord, OutcomeRecord } from '../../src/audit/record.js';
import { KeySet } from '../../src/auth/keys.js';
import { generateIssuerKey, type IssuerKey, mintToken } from '../../src/auth/mint.js';
import { grantsAlone, type Policy } from '../../src/auth/policy.js';
import type { Revocations } from '../../src/auth/revocation.js';
import { TokenVerifier } from '../../src/auth/token.js';
import { capabilities } from '../../src/core/capability.js';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  QuotaFailureSchema,
  RetryInfoSchema,
} from '../../src/gen/public/google/rpc/error_details_pb.js';
import { StatusSchema } from '../../src/gen/public/google/rpc/status_pb.js';
import { TerminalService } from '../../src/gen/public/grantty/v1/terminal_service_pb.js';
import { createServer, type GranttyServer, type ServerOptions } from '../../src/server/server.js';
import { FakeSupervisor } from '../support/fakeSupervisor.js';
import { workerEntry } from '../support/workerEntry.js';
import { ManualClock } from './manualClock.js';

const ISSUER = 'https://issuer.test';
const AUDIENCE = 'grantty-test';

export interface GrantInit {
  readonly actions?: readonly string[];
  readonly resource?: Partial<Record<'owner' | 'agent' | 'session' | 'terminal', string>>;
  readonly constraints?: Readonly<Record<string, unknown>>;
  readonly id?: string;
}

export class Harness implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly intents: IntentRecord[] = [];
  readonly outcomes: OutcomeRecord[] = [];
  readonly logged: string[] = [];
  readonly revoked = new Set<string>();
  revocationEpoch = 0;
  policy: Policy = grantsAlone;
  /** Called with each record of a decision. */
  onIntent: (record: IntentRecord) => void = () => {};
  /** Set to have the audit trail refuse. */
  auditFailure: unknown;
  server!: GranttyServer;
  /** Over the fake terminals; threads start when a screen is asked for. */
  readonly sessions: Sessions;
  client!: Client;
  readonly #clients: Client[] = [];

  private constructor(
    readonly supervisor: FakeSupervisor,
    readonly stateDir: string,
    private readonly key: IssuerKey,
  ) {
    this.sessions = openSessions({ supervisor, stateDir, clock: this.clock, workerEntry });
  }

  static async start(options: Partial<ServerOptions> = {}): Promise<Harness> {
    const stateDir = await mkdtemp(join(tmpdir(), 'grantty-server-'));
    const key = await generateIssuerKey();
    const jwksFile = join(stateDir, 'jwks.json');
    await writeFile(jwksFile, JSON.stringify(key.jwks));
    const keys = new KeySet([{ issuer: ISSUER, jwksFile }]);
    await keys.reload();
    const harness = new Harness(new FakeSupervisor(stateDir), stateDir, key);
    const { clock } = harness;
    const revocations: Revocations = {
      get epoch() {
        return harness.revocationEpoch;
      },
      isRevoked: ({ jti }) => harness.revoked.has(jti),
      isTokenRevoked: (_issuer, jti) => harness.revoked.has(jti),
      isKeyRevoked: () => false,
      revoke: () => {
        throw new TypeError('a test revokes by the set');
      },
    };
    harness.server = await createServer({
      supervisor: harness.supervisor,
      sessions: harness.sessions,
      stateDir,
      tokens: new TokenVerifier({ keys, audience: AUDIENCE, clock: () => clock.now() }),
      policy: {
        get hash() {
          return harness.policy.hash;
        },
        decide: (request) => harness.policy.decide(request),
      },
      revocations,
      audit: {
        async intent(record) {
          if (harness.auditFailure !== undefined && record.decision === 'allow') {
            throw harness.auditFailure;
          }
          harness.intents.push(record);
          harness.onIntent(record);
          return record.decisionId;
        },
        outcome: (record) => harness.outcomes.push(record),
        change: async () => {},
      },
      logger: pino({ level: 'warn' }, { write: (line: string) => harness.logged.push(line) }),
      tls: 'insecure',
      listen: { host: '127.0.0.1', port: 0 },
      version: '0.0.0-test',
      clock,
      ...options,
    });
    if (options.tls === undefined) harness.client = harness.connect();
    return harness;
  }

  /** A client with a connection of its own; closed with the harness. */
  connect(channel: ChannelCredentials = credentials.createInsecure(), options = {}): Client {
    const client = new Client(`127.0.0.1:${this.server.port}`, channel, {
      'grpc.use_local_subchannel_pool': 1,
      ...options,
    });
    this.#clients.push(client);
    return client;
  }

  /** A token with these grants; by default one that may do everything to owner 1000's terminals. */
  token(grants: readonly GrantInit[] = [{}], rest: Partial<Parameters<typeof mintToken>[0]> = {}) {
    return mintToken({
      key: this.key.privateJwk,
      issuer: ISSUER,
      audience: AUDIENCE,
      subject: 'alice',
      ttl: 600,
      now: this.clock.now(),
      grants: grants.map((grant, index) => ({
        type: 'urn:grantty:terminal:v1',
        id: grant.id ?? `g${index}`,
        actions: grant.actions ?? capabilities,
        resource: { owner: '1000', agent: '*', session: '*', terminal: '*', ...grant.resource },
        ...(grant.constraints && { constraints: grant.constraints }),
      })),
      ...rest,
    });
  }

  /** One unary call; rejects with a `ServiceError`. */
  unary<M extends DescMethod>(
    method: M,
    request: MessageInitShape<M['input']>,
    token: string | Metadata | undefined,
    options: { readonly deadline?: number; readonly client?: Client } = {},
  ): Promise<MessageShape<M['output']>> {
    return new Promise((resolve, reject) => {
      (options.client ?? this.client).makeUnaryRequest(
        pathOf(method),
        encode(method),
        (bytes: Buffer) => fromBinary(method.output, bytes) as MessageShape<M['output']>,
        request,
        metadataOf(token),
        options.deadline === undefined ? {} : { deadline: options.deadline },
        (error, reply) => {
          if (error) reject(error);
          else resolve(reply as MessageShape<M['output']>);
        },
      );
    });
  }

  /** One unary call with these very bytes as its message. */
  raw(path: string, message: Buffer, token: string | undefined): Promise<Buffer | undefined> {
    return new Promise((resolve, reject) => {
      const identity = (bytes: Buffer) => bytes;
      this.client.makeUnaryRequest(
        path,
        identity,
        identity,
        message,
        metadataOf(token),
        (error, reply) => {
          if (error) reject(error);
          else resolve(reply);
        },
      );
    });
  }

  serverStream<M extends DescMethod>(
    method: M,
    request: MessageInitShape<M['input']>,
    token: string | undefined,
    options: { readonly deadline?: number; readonly client?: Client } = {},
  ): Incoming<MessageShape<M['output']>> {
    const call = (options.client ?? this.client).makeServerStreamRequest(
      pathOf(method),
      encode(method),
      (bytes: Buffer) => fromBinary(method.output, bytes) as MessageShape<M['output']>,
      request,
      metadataOf(token),
      options.deadline === undefined ? {} : { deadline: options.deadline },
    );
    return new Incoming(call);
  }

  bidi<M extends DescMethod>(method: M, token: string | undefined): Bidi<M> {
    const call = this.client.makeBidiStreamRequest(
      pathOf(method),
      encode(method),
      (bytes: Buffer) => fromBinary(method.output, bytes) as MessageShape<M['output']>,
      metadataOf(token),
    );
    return new Bidi(call);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client.close();
    await this.server[Symbol.asyncDispose]();
    await this.sessions[Symbol.asyncDispose]();
    await this.supervisor[Symbol.asyncDispose]();
    await rm(this.stateDir, { recursive: true, force: true });
  }
}

/** What comes in on a stream, taken one by one. */
export class Incoming<T> {
  readonly #items: T[] = [];
  #wake: (() => void) | undefined;
  #ended = false;
  error: ServiceError | undefined;

  constructor(readonly call: ClientReadableStream<T>) {
    call.on('data', (item: T) => {
      this.#items.push(item);
      this.#wake?.();
    });
    call.on('error', (error: ServiceError) => {
      this.error = error;
    });
    call.on('status', () => {
      this.#ended = true;
      this.#wake?.();
    });
  }

  /** The next message; undefined at the end. */
  async next(): Promise<T | undefined> {
    while (this.#items.length === 0 && !this.#ended) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#items.shift();
  }

  /** All messages up to the end. */
  async rest(): Promise<T[]> {
    const all: T[] = [];
    for (let item = await this.next(); item !== undefined; item = await this.next()) all.push(item);
    // `error` may be told right after the status.
    await new Promise((resolve) => setImmediate(resolve));
    return all;
  }
}

export class Bidi<M extends DescMethod> extends Incoming<MessageShape<M['output']>> {
  constructor(
    readonly duplex: ClientDuplexStream<MessageInitShape<M['input']>, MessageShape<M['output']>>,
  ) {
    super(duplex);
  }

  send(frame: MessageInitShape<M['input']>): void {
    this.duplex.write(frame);
  }
}

function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

function encode<M extends DescMethod>(method: M) {
  return (request: MessageInitShape<M['input']>): Buffer =>
    Buffer.from(toBinary(method.input, create(method.input, request)));
}

function metadataOf(token: string | Metadata | undefined): Metadata {
  if (token instanceof Metadata) return token;
  const metadata = new Metadata();
  if (token !== undefined) metadata.set('authorization', `Bearer ${token}`);
  return metadata;
}

/** The error that a call must end with. */
export async function failureOf(call: Promise<unknown>): Promise<ServiceError> {
  let error: unknown;
  try {
    await call;
  } catch (thrown) {
    error = thrown;
  }
  if (typeof error !== 'object' || error === null || !('metadata' in error)) {
    throw new Error('the call should have failed with a status', { cause: error });
  }
  return error as ServiceError;
}

/** The google.rpc details of a failed call. */
export function detailsOf(error: unknown) {
  const { metadata } = error as ServiceError;
  const [bytes] = metadata.get('grpc-status-details-bin');
  const status = fromBinary(StatusSchema, bytes as Buffer);
  return {
    status,
    info: pick(status, ErrorInfoSchema),
    badRequest: pick(status, BadRequestSchema),
    precondition: pick(status, PreconditionFailureSchema),
    quota: pick(status, QuotaFailureSchema),
    retry: pick(status, RetryInfoSchema),
  };
}

function pick<S extends DescMessage>(
  status: MessageShape<typeof StatusSchema>,
  schema: S,
): MessageShape<S> | undefined {
  return status.details
    .map((any) => anyUnpack(any, schema))
    .find((message) => message !== undefined);
}

export const terminals = TerminalService.method;
