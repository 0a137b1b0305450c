/** The whole service in this process: TLS on loopback, real tokens, a real supervisor. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeDevelopmentCertificates } from '../../src/app/certificates.js';
import { openSessions } from '../../src/app/sessions.js';
import { Delegation } from '../../src/auth/delegation.js';
import { openIssuerKey } from '../../src/auth/issuerKey.js';
import { KeySet } from '../../src/auth/keys.js';
import { LineageRegistry } from '../../src/auth/lineageRegistry.js';
import { generateIssuerKey, mintToken } from '../../src/auth/mint.js';
import { grantsAlone } from '../../src/auth/policy.js';
import type { ProofMode } from '../../src/auth/proof.js';
import { RevocationList } from '../../src/auth/revocationList.js';
import { TokenVerifier } from '../../src/auth/token.js';
import { type Client, connect } from '../../src/client/connect.js';
import { type Capability, capabilities } from '../../src/core/capability.js';
import { GRANT_TYPE } from '../../src/core/grant.js';
import { type Clock, systemClock } from '../../src/server/clock.js';
import { createServer, type GranttyServer } from '../../src/server/server.js';
import type { ServerLimits } from '../../src/server/serverLimits.js';
import type { Supervisor } from '../../src/supervisor/api.js';
import { createInProcessSupervisor } from '../../src/supervisor/inProcess.js';
import type { Isolation } from '../../src/supervisor/isolation.js';
import { owner, silentLog } from './registry.js';
import { workerEntry } from './workerEntry.js';

const ISSUER = 'https://issuer.test';
const OWN_ISSUER = 'https://grantty.test';
const AUDIENCE = 'grantty-test';

const certificates = makeDevelopmentCertificates({
  hosts: ['127.0.0.1', 'localhost'],
  clientName: 'test client',
  days: 1,
});
const issuer = await generateIssuerKey();

export interface TokenSpec {
  readonly subject?: string;
  readonly actions?: readonly Capability[];
  readonly resource?: Partial<Record<'owner' | 'agent' | 'session' | 'terminal', string>>;
  readonly constraints?: Readonly<Record<string, unknown>>;
  /** Seconds. */
  readonly ttl?: number;
}

export interface TestService extends AsyncDisposable {
  readonly supervisor: Supervisor;
  readonly server: GranttyServer;
  readonly stateDir: string;
  readonly address: string;
  /** Another server takes over; the supervisor lives on. Clients made before are of no use then. */
  restartServer(): Promise<void>;
  /** Both end, whatever is to be done in between is done, and others take over. */
  restartAll(between?: () => Promise<void>): Promise<void>;
  /** PEM of the authority that signed the server's certificate. */
  readonly ca: string;
  /** All seven capabilities over the owner's terminals, unless the spec says less. */
  token(spec?: TokenSpec): Promise<string>;
  /** A connection of its own, with a token of that spec or this very one. Closed with the service. */
  client(spec?: TokenSpec | string): Client;
}

export interface ServiceOptions {
  /** Absent: children run as this process's user, who is the one owner. */
  readonly isolation?: Isolation;
  readonly pop?: ProofMode;
  /** Of tokens, streams and leases. */
  readonly clock?: Clock;
  readonly limits?: Partial<ServerLimits>;
  /** Path of the bash of sessions. Absent: the server's own choice. */
  readonly bash?: string;
}

export async function startService(options: ServiceOptions = {}): Promise<TestService> {
  const { clock = systemClock } = options;
  const now = () => clock.now();
  const stateDir = await mkdtemp(join(tmpdir(), 'grantty-service-'));
  const jwksFile = join(stateDir, 'jwks.json');
  await writeFile(jwksFile, JSON.stringify(issuer.jwks));
  const file = (name: string) => join(stateDir, name);
  const own = await openIssuerKey(file('issuer.jwk'), OWN_ISSUER, () => false);
  const openLists = async () => ({
    revocations: await RevocationList.open(file('revocations.jsonl'), now),
    registry: await LineageRegistry.open(file('delegations.jsonl'), now),
  });
  let lists = await openLists();
  const closeLists = async () => {
    await lists.revocations[Symbol.asyncDispose]();
    await lists.registry[Symbol.asyncDispose]();
  };
  const keys = new KeySet([
    { issuer: ISSUER, jwksFile },
    { issuer: OWN_ISSUER, jwks: own.jwks },
  ]);
  await keys.reload();
  const supervise = () =>
    createInProcessSupervisor({
      stateDir,
      stateDirId: 'test',
      isolation: options.isolation ?? { mode: 'shared-uid', owners: owner },
      version: 'test',
      log: silentLog,
      locator: ({ id }) => `test:${id}`,
      now,
    });
  let supervisor = await supervise();
  const shell = options.bash === undefined ? {} : { bash: options.bash };
  const openHost = () => openSessions({ supervisor, stateDir, workerEntry, ...shell });
  let sessions = openHost();
  const serve = () =>
    createServer({
      supervisor,
      sessions,
      stateDir,
      tokens: new TokenVerifier({
        keys,
        audience: AUDIENCE,
        ownIssuer: OWN_ISSUER,
        clock: now,
      }),
      policy: grantsAlone,
      revocations: lists.revocations,
      delegation: new Delegation(own, lists.registry, 8),
      audit: {
        intent: async ({ decisionId }) => decisionId,
        outcome: () => {},
        change: async () => {},
      },
      logger: silentLog,
      tls: {
        cert: Buffer.from(certificates.server.cert),
        key: Buffer.from(certificates.server.key),
        clientCa: Buffer.from(certificates.ca),
      },
      ...(options.pop && { pop: options.pop }),
      listen: { host: '127.0.0.1', port: 0 },
      version: 'test',
      clock,
      ...(options.limits && { limits: options.limits }),
    });
  let server = await serve();
  const clients: Client[] = [];
  const token = (spec: TokenSpec = {}) =>
    mintToken({
      key: issuer.privateJwk,
      issuer: ISSUER,
      audience: AUDIENCE,
      subject: spec.subject ?? 'tester',
      ttl: spec.ttl ?? 3600,
      now: clock.now(),
      grants: [
        {
          type: GRANT_TYPE,
          id: 'g1',
          actions: spec.actions ?? capabilities,
          resource: { owner, agent: '*', session: '*', terminal: '*', ...spec.resource },
          constraints: { env_allow: ['*'], ...spec.constraints },
        },
      ],
    });
  const restart = async (between: () => Promise<void>) => {
    await server[Symbol.asyncDispose]();
    await sessions[Symbol.asyncDispose]();
    await between();
    sessions = openHost();
    await closeLists();
    lists = await openLists();
    server = await serve();
  };
  return {
    get supervisor() {
      return supervisor;
    },
    get server() {
      return server;
    },
    stateDir,
    get address() {
      return `127.0.0.1:${server.port}`;
    },
    restartServer: () => restart(async () => {}),
    restartAll: (between = async () => {}) =>
      restart(async () => {
        await supervisor[Symbol.asyncDispose]();
        await between();
        supervisor = await supervise();
      }),
    ca: certificates.ca,
    token,
    client(spec) {
      let minted: Promise<string> | undefined;
      const client = connect({
        address: `127.0.0.1:${server.port}`,
        ca: certificates.ca,
        token: () => {
          minted ??= typeof spec === 'string' ? Promise.resolve(spec) : token(spec);
          return minted;
        },
      });
      clients.push(client);
      return client;
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.close();
      await server[Symbol.asyncDispose]();
      await sessions[Symbol.asyncDispose]();
      await supervisor[Symbol.asyncDispose]();
      await closeLists();
      await rm(stateDir, { recursive: true, force: true });
    },
  };
}
