/** The composition root of the server: wires all parts, in the order in which they depend. */
import type { Logger } from 'pino';
import { TokenVerifier } from '../auth/token.js';
import { createServer } from '../server/server.js';
import type { StateDir } from '../store/stateDir.js';
import { openAdminSocket } from './adminSocket.js';
import { authorityFiles, openAuthority } from './authority.js';
import type { Configuration } from './config.js';
import { holdTrail } from './heldTrail.js';
import { formatAddress, type ListenAddress } from './listen.js';
import { openSessions } from './sessions.js';
import type { CheckedStart } from './startChecks.js';
import { openSupervisor, type SupervisorKind } from './supervisorChoice.js';
import { readTls } from './tlsFiles.js';

export interface ServeOptions {
  /** Held by the caller, see `holdStateDir`. */
  readonly stateDir: StateDir;
  readonly listen: ListenAddress;
  readonly config: Configuration;
  /** See `checkStart`. */
  readonly checked: CheckedStart;
  readonly supervisor: SupervisorKind;
  /** See `SupervisorOptions`. */
  readonly superviseArguments: readonly string[];
  readonly version: string;
  readonly logger: Logger;
  /** Its abort ends the server: streams are sent away, then terminals stopped. */
  readonly signal: AbortSignal;
  /** Its abort leaves no grace to terminals that end with this process. */
  readonly hurry: AbortSignal;
  /** Called once, when calls are answered. */
  readonly onReady: (server: RunningServer) => void | Promise<void>;
}

export interface RunningServer {
  /** With the port that was found for port 0. */
  readonly address: string;
  /** Reads keys, certificates and policies again; what is unsound keeps what was there. */
  reload(): Promise<void>;
}

/** Milliseconds that calls in progress have when the server ends. */
const DRAIN_GRACE_MS = 5_000;

/**
 * Serves until the signal aborts. Terminals outlive it with a detached supervisor; with one in this
 * process they end, and their records and histories stay.
 * @throws Error that says what to do, for what prevents the start
 */
export async function serve(options: ServeOptions): Promise<void> {
  const { stateDir, config, listen, logger, version, signal } = options;
  const { isolation, pop, tls, policies } = options.checked;
  const { hash, policies: all } = policies.set;
  logger.info({ dir: config.policy, hash, policies: all.length }, 'policies in force');
  await using authority = await openAuthority({ stateDir, config, logger });
  const { keys, revocations, delegation } = authority;

  await using audit = await holdTrail({
    config: config.audit,
    stateDir,
    isolation,
    version,
    policy: policies.set,
    logger,
  });
  await authority.record(audit.trail);

  let address = formatAddress(listen);
  let isSupervised = true;
  let tellHealth = () => {};
  await using supervisor = await openSupervisor({
    kind: options.supervisor,
    stateDir,
    isolation,
    config,
    version,
    logger,
    locator: () => `grpc://${address}`,
    superviseArguments: options.superviseArguments,
    onChange: (connected) => {
      isSupervised = connected;
      tellHealth();
    },
    hurry: options.hurry,
  });
  await using sessions = openSessions({ supervisor, stateDir: stateDir.path });
  await using server = await createServer({
    supervisor,
    sessions,
    stateDir: stateDir.path,
    tokens: new TokenVerifier({
      keys,
      audience: config.audience,
      ownIssuer: delegation.signer.issuer,
      clock: Date.now,
    }),
    policy: policies.policy,
    revocations,
    delegation,
    pop,
    audit: audit.trail,
    logger,
    tls,
    listen,
    version,
    limits: {
      maxConnections: config.limits.connections,
      maxStreamsPerPrincipal: config.limits.streams_per_principal,
      firstCallMs: config.limits.first_call_seconds * 1000,
      idleMs: config.limits.idle_seconds * 1000,
      connectionAgeMs: config.limits.connection_age_seconds * 1000,
    },
  });
  address = formatAddress({ host: listen.host, port: server.port });
  tellHealth = () => server.supervisorIs(isSupervised);
  tellHealth();
  using _watching = policies.watch((set) => {
    server.recheck();
    audit.policyChanged(set);
  });
  using _refreshing = authority.watchKeys(audit.trail, () => server.recheck());
  await using _admin = await openAdminSocket({
    path: authorityFiles(stateDir.path).adminSocket,
    revoke: (what) => server.revoke(what),
    logger,
  });
  await options.onReady({
    address,
    async reload() {
      const results = await Promise.allSettled([
        keys.reload(),
        readTls(config).then((renewed) => server.replaceTls(renewed)),
        policies.reload(),
      ]);
      // Of several issuers one may have failed: what the others retired is out all the same.
      server.recheck();
      const failures = results.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
      if (failures.length > 0) throw new AggregateError(failures, failures.map(wordsOf).join('; '));
    },
  });
  logger.info({ address, isolation, stateDir: stateDir.path, version }, 'serving');
  await aborted(signal);
  logger.info({ graceMs: DRAIN_GRACE_MS }, 'draining');
  await server.drain(DRAIN_GRACE_MS);
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
