/** The gRPC server: its services, its port, its end. */
import { logVerbosity, Server, ServerCredentials, setLogVerbosity } from '@grpc/grpc-js';
import { HealthImplementation } from 'grpc-health-check';
import type { Logger } from 'pino';
import type { AuditTrail } from '../audit/trail.js';
import { RateBudgets } from '../auth/budgets.js';
import type { Delegation } from '../auth/delegation.js';
import type { Policy } from '../auth/policy.js';
import type { ProofMode } from '../auth/proof.js';
import type { Revocations } from '../auth/revocation.js';
import type { TokenVerifier } from '../auth/token.js';
import { MAX_MESSAGE_BYTES } from '../core/limits.js';
import type { Revoked } from '../core/revoked.js';
import {
  file_grantty_v1_grant_service,
  GrantService,
} from '../gen/public/grantty/v1/grant_service_pb.js';
import {
  file_grantty_v1_server_service,
  ServerService,
} from '../gen/public/grantty/v1/server_service_pb.js';
import {
  file_grantty_v1_session_service,
  SessionService,
} from '../gen/public/grantty/v1/session_service_pb.js';
import {
  file_grantty_v1_terminal_service,
  TerminalService,
} from '../gen/public/grantty/v1/terminal_service_pb.js';
import type { Supervisor } from '../supervisor/api.js';
import { attach } from './attach.js';
import { admit } from './authorize.js';
import { type Clock, systemClock } from './clock.js';
import type { ServerContext } from './context.js';
import { createTerminal, startTerminal } from './createTerminal.js';
import { TlsCredentials, type TlsMaterial } from './credentials.js';
import type { Gate } from './gate.js';
import { checkAccess } from './grantCheck.js';
import { delegate } from './grantDelegate.js';
import { introspect } from './grantIntrospect.js';
import { revoke } from './grantRevoke.js';
import { type Boundary, serviceDefinition, serviceHandlers } from './grpc.js';
import { Hub } from './hub.js';
import { LeaseBook } from './leaseBook.js';
import { Listener } from './listener.js';
import { listTerminals } from './listTerminals.js';
import { OpenStreams, serverDraining } from './openStreams.js';
import { callerOf } from './perform.js';
import { observeStreams } from './rawStreams.js';
import { addReflection } from './reflection.js';
import { type RevocationResult, Revoker } from './revoker.js';
import { serverInfo } from './serverInfo.js';
import { defaultLimits, type ServerLimits } from './serverLimits.js';
import { SessionBook } from './sessionBook.js';
import { sessionCalls } from './sessionCalls.js';
import type { SessionHost } from './sessionHost.js';
import { statusOf, Unimplemented } from './status.js';
import { terminalCalls } from './terminalCalls.js';
import { TerminalQuota } from './terminalQuota.js';
import { wait } from './wait.js';
import { watch } from './watch.js';
import { WatcherList } from './watcherList.js';
import { watchTerminals } from './watchTerminals.js';

const services = [TerminalService, SessionService, GrantService, ServerService];

const serviceNames = services.map(({ typeName }) => typeName);

/** The whole server, by the empty name, and what answers nothing of use without the supervisor. */
const supervised = [
  '',
  ...[TerminalService, SessionService, ServerService].map(({ typeName }) => typeName),
];

const files = [
  file_grantty_v1_terminal_service,
  file_grantty_v1_session_service,
  file_grantty_v1_grant_service,
  file_grantty_v1_server_service,
];

/** Milliseconds between signs of life from an HTTP/2 peer, and for the answer to one. */
const KEEPALIVE_MS = 60_000;
const KEEPALIVE_TIMEOUT_MS = 20_000;

export interface ServerOptions {
  readonly supervisor: Supervisor;
  /** Over the same supervisor. The caller's, as that is; its sessions outlive this server. */
  readonly sessions: SessionHost;
  /** Where the supervisor keeps its files; they are only read. */
  readonly stateDir: string;
  readonly tokens: TokenVerifier;
  readonly policy: Policy;
  readonly revocations: Revocations;
  /** Signs delegated tokens; absent: there are none. */
  readonly delegation?: Delegation;
  /** Default: if-present. */
  readonly pop?: ProofMode;
  readonly audit: AuditTrail;
  readonly logger: Logger;
  /** `insecure` speaks plain HTTP/2: for tests on loopback. */
  readonly tls: TlsMaterial | 'insecure';
  readonly listen: { readonly host: string; readonly port: number };
  readonly version: string;
  readonly limits?: Partial<ServerLimits>;
  readonly clock?: Clock;
}

export interface GranttyServer extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** What is open now. */
  readonly load: {
    readonly streams: number;
    readonly watchedTerminals: number;
    readonly connections: number;
  };
  /** Revokes in the operator's name; in force at once. @throws as `Revoking.done` */
  revoke(what: Revoked): Promise<RevocationResult>;
  /** Has open streams look at their authority again: after a revocation, new keys, a new policy. */
  recheck(): void;
  /**
   * Whether the supervisor answers; at first it does. Without it health says NOT_SERVING for the
   * server as a whole and for every service but GrantService, which revokes and delegates all the same.
   */
  supervisorIs(there: boolean): void;
  /** Connections from now on get this certificate. */
  replaceTls(material: TlsMaterial): void;
  /**
   * Sends everybody away: health says NOT_SERVING, streams end with SERVER_DRAINING, calls in
   * progress may finish; after `graceMs` what is left is cut off.
   */
  drain(graceMs: number): Promise<void>;
}

/** Resolves when the port is open. The supervisor is the caller's and is not disposed. */
export async function createServer(options: ServerOptions): Promise<GranttyServer> {
  // It prints headers it cannot parse, tokens among them, to standard error.
  setLogVerbosity(logVerbosity.NONE);
  const limits = { ...defaultLimits, ...options.limits };
  const context = contextOf(options, limits);
  const server = new Server({
    'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
    'grpc.max_concurrent_streams': limits.maxConcurrentStreams,
    'grpc.max_connection_idle_ms': limits.idleMs,
    'grpc.keepalive_time_ms': KEEPALIVE_MS,
    'grpc.keepalive_timeout_ms': KEEPALIVE_TIMEOUT_MS,
    'grpc.enable_channelz': 0,
  });
  addServices(server, context);
  const health = new HealthImplementation(
    Object.fromEntries(['', ...serviceNames].map((name) => [name, 'SERVING' as const])),
  );
  health.addToServer(server);
  addReflection(server, files);

  const tls =
    options.tls === 'insecure'
      ? undefined
      : new TlsCredentials(options.tls, limits.maxConcurrentStreams);
  const injector = server.createConnectionInjector(tls ?? ServerCredentials.createInsecure());
  const listener = await Listener.open(injector, { ...options.listen, ...limits });
  observeStreams(server, (peer) => listener.called(peer));

  const { streams, hub } = context;
  const drain = async (graceMs: number): Promise<void> => {
    for (const service of ['', ...serviceNames]) health.setStatus(service, 'NOT_SERVING');
    streams.drain();
    // Tells every connection to go once its calls are done. What does not, the listener cuts off:
    // clients take that for UNAVAILABLE, and a reset by grpc-js for CANCELLED.
    injector.destroy();
    await listener.close(graceMs);
  };
  return {
    host: listener.address.address,
    port: listener.address.port,
    get load() {
      return {
        streams: streams.size,
        watchedTerminals: hub.size,
        connections: listener.connections,
      };
    },
    revoke: (what) => context.revoker.begin(what).done,
    recheck: () => streams.recheck(),
    supervisorIs(there) {
      if (streams.draining) return;
      for (const service of supervised) {
        health.setStatus(service, there ? 'SERVING' : 'NOT_SERVING');
      }
    },
    replaceTls: (material) => tls?.replace(material),
    drain,
    [Symbol.asyncDispose]: () => drain(0),
  };
}

function contextOf(options: ServerOptions, limits: ServerLimits): ServerContext {
  const { supervisor, sessions, stateDir, logger, version, clock = systemClock } = options;
  const { tokens, policy, revocations, audit, delegation, pop = 'if-present' } = options;
  const inputRates = new RateBudgets(() => clock.now());
  const gate: Gate = {
    supervisor,
    tokens,
    policy,
    revocations,
    leases: new LeaseBook(),
    pop,
    audit,
    inputRates,
    clock,
    logger,
  };
  const streams = new OpenStreams(limits.maxStreamsPerPrincipal);
  return {
    gate,
    supervisor,
    stateDir,
    hub: new Hub(supervisor),
    watchers: new WatcherList(),
    streams,
    quota: new TerminalQuota(supervisor),
    revoker: new Revoker(gate, streams, clock),
    sessions,
    sessionBook: new SessionBook({ host: sessions, supervisor, clock, logger }),
    ...(delegation && { delegation }),
    limits,
    clock,
    logger,
    version,
  };
}

/** Every service of the contract; what is not built answers UNIMPLEMENTED to who has a token. */
function addServices(server: Server, context: ServerContext): void {
  const { gate, logger, streams } = context;
  const boundary: Boundary = {
    accept: () => {
      if (streams.draining) throw serverDraining();
    },
    authenticate: (call) => admit(gate, callerOf(call)),
    status: (error, { path, peer }) => statusOf(error, logger, { path, peer: peer.address }),
    unimplemented: () => new Unimplemented(),
  };
  server.addService(
    serviceDefinition(TerminalService),
    serviceHandlers(
      TerminalService,
      {
        ...terminalCalls(context),
        createTerminal: createTerminal(context),
        startTerminal: startTerminal(context),
        listTerminals: listTerminals(context),
        watch: watch(context),
        attach: attach(context),
        wait: wait(context),
        watchTerminals: watchTerminals(context),
      },
      boundary,
    ),
  );
  server.addService(
    serviceDefinition(ServerService),
    serviceHandlers(ServerService, serverInfo(context, serviceNames), boundary),
  );
  server.addService(
    serviceDefinition(GrantService),
    serviceHandlers(
      GrantService,
      {
        introspect: introspect(context),
        checkAccess: checkAccess(context),
        delegate: delegate(context),
        revoke: revoke(context),
      },
      boundary,
    ),
  );
  server.addService(
    serviceDefinition(SessionService),
    serviceHandlers(SessionService, sessionCalls(context), boundary),
  );
}
