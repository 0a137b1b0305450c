/**
 * What a start needs of the configuration and of the host, checked before anything is made: a start
 * that is refused leaves no directory, no key, no record and no supervisor behind.
 */
import type { Logger } from 'pino';
import { PACKAGED_POLICY_DIR } from '../auth/cedarFiles.js';
import { parseJwks } from '../auth/jwks.js';
import type { ProofMode } from '../auth/proof.js';
import type { TlsMaterial } from '../server/credentials.js';
import type { Isolation } from '../supervisor/isolation.js';
import type { Configuration } from './config.js';
import { ProblemList, problemOf } from './configurationError.js';
import { readNamed } from './configuredFile.js';
import { chooseIsolation } from './isolationChoice.js';
import { isLoopback, type ListenAddress } from './listen.js';
import { requireFreeAddress } from './listenCheck.js';
import { PolicySource } from './policySource.js';
import { chooseProof } from './proofChoice.js';
import { readTls } from './tlsFiles.js';

export interface StartQuestion {
  readonly config: Configuration;
  /** What errors call the configuration. */
  readonly file: string;
  /** Need not exist. */
  readonly stateDir: string;
  readonly listen: ListenAddress;
  /** Another process runs the terminals, see `IsolationFacts`. */
  readonly isElsewhere: boolean;
  readonly allowSharedUid: boolean;
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>;
}

export interface CheckedStart {
  readonly isolation: Isolation;
  readonly pop: ProofMode;
  readonly tls: TlsMaterial;
  readonly policies: PolicySource;
}

/**
 * All that is wrong is told at once.
 * @throws ConfigurationError for what must be changed; Error for an address that somebody else has
 */
export async function checkStart(question: StartQuestion): Promise<CheckedStart> {
  const { config, file, stateDir, listen, isElsewhere, allowSharedUid, logger } = question;
  const problems = new ProblemList();
  const isLocal = isLoopback(listen.host);
  const uid = process.getuid?.() ?? 0;
  const isolation = await problems.of(() =>
    chooseIsolation({ runAs: config.run_as, isLocal, uid, allowSharedUid, isElsewhere }),
  );
  const pop = await problems.of(() => chooseProof(config, isLocal));
  const { tls, policies } = await checkFiles(config, logger, problems);
  problems.throwIfAny(file);
  await requireFreeAddress(listen, stateDir);
  if (!isolation || !pop || !tls || !policies) throw new TypeError('what is missing is a problem');
  return { isolation, pop, tls, policies };
}

/** Everything that the configuration names, read. What is wrong with it goes to the list. */
export async function checkFiles(
  config: Configuration,
  logger: StartQuestion['logger'],
  problems: ProblemList,
): Promise<Partial<Pick<CheckedStart, 'tls' | 'policies'>>> {
  const tls = await problems.of(() => readTls(config));
  for (const [at, { jwks_file: path }] of config.issuers.entries()) {
    if (path !== undefined) await problems.of(() => checkKeys(`issuers[${at}].jwks_file`, path));
  }
  const dir = config.policy ?? PACKAGED_POLICY_DIR;
  const policies = await problems.of(() => PolicySource.open({ dir, logger }));
  return { ...(tls && { tls }), ...(policies && { policies }) };
}

/** A file is there at the start or never; an issuer behind a URL may come back. */
async function checkKeys(key: string, path: string): Promise<void> {
  const text = (await readNamed(key, path)).toString();
  try {
    await parseJwks(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw problemOf(key, `${path} is no JWK set to verify tokens with: ${why}`);
  }
}
