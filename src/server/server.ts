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
import type { Supervisor } from '../supervisor/api.js';
import { type Clock, systemClock } from './clock.js';
import { ConnectionAge } from './connectionAge.js';
import type { ServerContext } from './context.js';
import { TlsCredentials, type TlsMaterial } from './credentials.js';
import { framedMessages } from './framedMessage.js';
import type { Gate } from './gate.js';
import { Hub } from './hub.js';
import { LeaseBook } from './leaseBook.js';
import { Listener } from './listener.js';
import { OpenStreams } from './openStreams.js';
import { Peers } from './peer.js';
import { observeStreams } from './rawStreams.js';
import { addReflection } from './reflection.js';
import { RequestGuard } from './requestGuard.js';
import { type RevocationResult, Revoker } from './revoker.js';
import { defaultLimits, type ServerLimits } from './serverLimits.js';
import { addServices, files, openEnded, serviceNames, supervised } from './services.js';
import { SessionBook } from './sessionBook.js';
import type { SessionHost } from './sessionHost.js';
import { TerminalQuota } from './terminalQuota.js';
import { WatcherList } from './watcherList.js';

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
  /** By which connections grow old. Default: the system's. */
  readonly connectionClock?: Clock;
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
    'grpc.keepalive_time_ms': limits.keepaliveMs,
    'grpc.keepalive_timeout_ms': limits.keepaliveTimeoutMs,
    'grpc.enable_channelz': 0,
    interceptors: [framedMessages],
  });
  const peers = new Peers();
  addServices(server, context, peers);
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
  const { streams, hub } = context;
  const guard = new RequestGuard(limits.requestMs, (path) => openEnded.has(path));
  const age = new ConnectionAge({
    clock: options.connectionClock ?? systemClock,
    ageMs: limits.connectionAgeMs,
    retire: (peer) => streams.retire(peer),
    forget: (peer) => streams.forget(peer),
    cut: (peer) => listener.cut(peer),
  });
  observeStreams(server, {
    called: (peer) => listener.called(peer),
    connected(session) {
      peers.connected(session);
      age.began(session);
    },
    began: (stream, headers) => guard.began(stream, headers),
  });

  const drain = async (graceMs: number): Promise<void> => {
    for (const service of ['', ...serviceNames]) health.setStatus(service, 'NOT_SERVING');
    streams.drain();
    // Tells every connection to go once its calls are done. What does not, the listener cuts off:
    // clients take that for UNAVAILABLE, and a reset by grpc-js for CANCELLED.
    injector.destroy();
    await listener.close(graceMs);
    guard[Symbol.dispose]();
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
