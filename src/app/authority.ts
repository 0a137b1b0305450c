/** What tokens this server believes and makes: keys, revocations, and an issuer of its own. */
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { AuditTrail } from '../audit/trail.js';
import { Delegation } from '../auth/delegation.js';
import { openIssuerKey } from '../auth/issuerKey.js';
import { type IssuerOptions, type KeyChange, KeySet } from '../auth/keys.js';
import { LineageRegistry } from '../auth/lineageRegistry.js';
import { RevocationList } from '../auth/revocationList.js';
import { systemClock } from '../server/clock.js';
import { ensurePrivateDir, removeTemporary } from '../store/files.js';
import type { StateDir } from '../store/stateDir.js';
import type { Configuration } from './config.js';
import { ConfigurationError } from './configurationError.js';

export interface Authority extends AsyncDisposable {
  readonly keys: KeySet;
  readonly revocations: RevocationList;
  readonly delegation: Delegation;
  /** Puts on record what is in force at the start, and what the operator revoked before. */
  record(audit: AuditTrail): Promise<void>;
  /** Reads keys again in the background, until disposed. `onChange`: see `Keys.epoch`. */
  watchKeys(audit: AuditTrail, onChange: () => void): Disposable;
}

export interface AuthorityOptions {
  readonly stateDir: StateDir;
  readonly config: Pick<Configuration, 'issuers' | 'delegation'>;
  readonly logger: Logger;
}

/** The files of authority below a state directory. */
export function authorityFiles(stateDir: string) {
  const dir = join(stateDir, 'authority');
  return {
    dir,
    /** The private key that signs delegated tokens, and nothing else. */
    issuerKey: join(dir, 'issuer.jwk'),
    delegations: join(dir, 'delegations.jsonl'),
    revocations: join(dir, 'revocations.jsonl'),
    adminSocket: join(dir, 'admin.sock'),
  };
}

/** @throws ConfigurationError; Error for files that are unsound */
export async function openAuthority(options: AuthorityOptions): Promise<Authority> {
  const { stateDir, config, logger } = options;
  const issuer = config.delegation.issuer ?? `urn:grantty:server:${stateDir.id}`;
  if (config.issuers.some((one) => one.issuer === issuer)) {
    throw new ConfigurationError(
      `issuers: ${issuer} signs delegated tokens by a key of this server's own (delegation.issuer); it cannot be given keys`,
    );
  }
  const files = authorityFiles(stateDir.path);
  await ensurePrivateDir(files.dir);
  await removeTemporary(files.dir);
  const now = () => systemClock.now();
  const revocations = await RevocationList.open(files.revocations, now);
  const registry = await LineageRegistry.open(files.delegations, now).catch(closing(revocations));
  const isRevoked = (keyId: string) => revocations.isKeyRevoked(issuer, keyId);
  const key = await openIssuerKey(files.issuerKey, issuer, isRevoked).catch(
    closing(revocations, registry),
  );
  const keys = new KeySet([...config.issuers.map(issuerOptions), { issuer, jwks: key.jwks }], now);
  await loadKeys(keys, config.issuers, logger).catch(closing(revocations, registry));
  const put = (audit: AuditTrail, change: KeyChange) =>
    audit
      .change({ change: 'keys', timeMs: now(), ...change })
      .catch((error) => logger.error({ err: error, ...change }, 'change of keys not on record'));
  return {
    keys,
    revocations,
    delegation: new Delegation(key, registry, config.delegation.max_depth),
    async record(audit) {
      for (const held of keys.held()) await put(audit, held);
      for (const one of revocations.unrecorded()) {
        try {
          await audit.change({ change: 'revoked', timeMs: one.at, what: one.what });
          await revocations.recorded(one);
        } catch (error) {
          logger.error({ err: error, at: one.at }, 'revocation of the operator not on record');
        }
      }
    },
    watchKeys(audit, onChange) {
      return keys.watch({
        after: systemClock.after,
        onChange(change) {
          logger.info(change, change.stale ? 'keys are stale' : 'keys have changed');
          onChange();
          void put(audit, change);
        },
        onFailure: ({ message }) =>
          logger.warn({ reason: message }, 'keys not read; those of before stay'),
      });
    },
    async [Symbol.asyncDispose]() {
      await registry[Symbol.asyncDispose]();
      await revocations[Symbol.asyncDispose]();
    },
  };
}

/** For a start that fails half way. */
function closing(...opened: readonly AsyncDisposable[]) {
  return async (error: unknown): Promise<never> => {
    for (const one of opened) await one[Symbol.asyncDispose]();
    throw error;
  };
}

type ConfiguredIssuer = Configuration['issuers'][number];

/** A file that cannot be read is a mistake in the configuration; a URL may come back. */
async function loadKeys(
  keys: KeySet,
  issuers: readonly ConfiguredIssuer[],
  logger: Logger,
): Promise<void> {
  try {
    await keys.reload();
  } catch (error) {
    const missing = new Set(keys.held().flatMap((one) => (one.stale ? [one.issuer] : [])));
    const isFatal = issuers.some((one) => missing.has(one.issuer) && one.jwks_url === undefined);
    if (isFatal) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    logger.warn({ reason }, 'keys not read yet; tokens of these issuers are refused');
  }
}

function issuerOptions({ issuer, ceiling, ...source }: ConfiguredIssuer): IssuerOptions {
  const limit = ceiling && { ceiling };
  if (source.jwks_url !== undefined) return { issuer, jwksUrl: source.jwks_url, ...limit };
  return { issuer, jwksFile: source.jwks_file ?? '', ...limit };
}
