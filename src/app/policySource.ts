/** Keeps the policies in force those of their directory: read, checked, swapped, looked at again. */
import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import { type Candidate, type CandidateOptions, checkCandidate } from '../auth/cedarCandidate.js';
import { describeProblem } from '../auth/cedarCheck.js';
import { type PolicySources, readPolicySources } from '../auth/cedarFiles.js';
import { CedarPolicy } from '../auth/cedarPolicy.js';
import type { PolicySet } from '../auth/cedarSet.js';
import type { Policy } from '../auth/policy.js';
import { fileFailure } from '../core/fileFailure.js';
import { ConfigurationError } from './configurationError.js';
import { unreadable } from './configuredFile.js';

/**
 * Milliseconds between two looks at the directory. Looking works on every file system and through
 * replaced links, where change notices may not come.
 */
const POLL_MS = 5_000;

export interface PolicySourceOptions extends CandidateOptions {
  readonly dir: string;
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>;
}

export class PolicySource {
  readonly #options: PolicySourceOptions;
  readonly #policy: CedarPolicy;
  /** Told of each set that came into force. */
  #onSwap: (set: PolicySet) => void = () => {};
  /** As last tried, sound or not. */
  #tried: string;
  /** As last seen; tried when it is seen again, so that nothing half copied is. */
  #seen: string;
  /** Why the directory could not be read the last time: told once, not at every look. */
  #unreadable: string | undefined;
  #busy: Promise<unknown> = Promise.resolve();

  private constructor(options: PolicySourceOptions, policy: CedarPolicy, tried: string) {
    this.#options = options;
    this.#policy = policy;
    this.#tried = tried;
    this.#seen = tried;
  }

  /** @throws ConfigurationError that lists what is wrong with the policies */
  static async open(options: PolicySourceOptions): Promise<PolicySource> {
    const { dir, logger } = options;
    try {
      const sources = await readPolicySources(dir);
      const set = soundSet(dir, await checkCandidate(sources, options), logger);
      const policy = new CedarPolicy(set, {
        onFailure: (failure) => logger.error(failure, 'denied: the policy could not be asked'),
      });
      return new PolicySource(options, policy, fingerprint(sources));
    } catch (error) {
      if (error instanceof ConfigurationError) throw error;
      throw unreadable('policy', dir, error);
    }
  }

  get policy(): Policy {
    return this.#policy;
  }

  /** Those in force. */
  get set(): PolicySet {
    return this.#policy.set;
  }

  /** Looks at the directory from time to time until disposed. `onSwap`: see `Policy.hash`. */
  watch(onSwap: (set: PolicySet) => void, everyMs = POLL_MS): Disposable {
    this.#onSwap = onSwap;
    const timer = setInterval(() => void this.look(), everyMs).unref();
    return {
      [Symbol.dispose]: () => {
        clearInterval(timer);
        this.#onSwap = () => {};
      },
    };
  }

  /** Reads the directory and puts it in force. @throws what is wrong with it; the old set stays */
  async reload(): Promise<void> {
    await this.#alone(async () => {
      const sources = await readPolicySources(this.#options.dir);
      this.#seen = fingerprint(sources);
      await this.#try(sources);
    });
  }

  /** As `reload` for what has changed and has been seen twice alike. What is wrong goes to the log. */
  async look(): Promise<void> {
    const { dir, logger } = this.#options;
    try {
      await this.#alone(async () => {
        const sources = await this.#read();
        if (sources === undefined) return;
        const seen = fingerprint(sources);
        const isSettled = seen === this.#seen;
        this.#seen = seen;
        if (isSettled && seen !== this.#tried) await this.#try(sources);
      });
    } catch (error) {
      logger.error({ reason: fileFailure(error), dir }, 'policies not loaded; those in force stay');
    }
  }

  /** Undefined when it could not be read, which the log was told. */
  async #read(): Promise<PolicySources | undefined> {
    const { dir, logger } = this.#options;
    try {
      const sources = await readPolicySources(dir);
      this.#unreadable = undefined;
      return sources;
    } catch (error) {
      const { message } = error as Error;
      if (message !== this.#unreadable) {
        logger.error(
          { reason: fileFailure(error), dir },
          'policies cannot be read; those in force stay',
        );
      }
      this.#unreadable = message;
      return undefined;
    }
  }

  async #try(sources: PolicySources): Promise<void> {
    const { dir, logger } = this.#options;
    this.#tried = fingerprint(sources);
    const set = soundSet(dir, await checkCandidate(sources, this.#options), logger);
    const { hash: previous } = this.set;
    if (set.hash === previous) return;
    this.#policy.swap(set);
    logger.info({ dir, hash: set.hash, previous, policies: set.policies.length }, 'new policies');
    this.#onSwap(set);
  }

  /** One at a time: the last to start must be the last to swap. */
  #alone(work: () => Promise<void>): Promise<void> {
    const done = this.#busy.then(work, work);
    this.#busy = done;
    return done;
  }
}

/** @throws ConfigurationError */
function soundSet(
  dir: string,
  candidate: Candidate,
  logger: PolicySourceOptions['logger'],
): PolicySet {
  if (!candidate.ok) {
    const problems = candidate.problems.map((problem) => describeProblem(problem));
    throw new ConfigurationError(
      `the policies in ${dir} are not valid:\n${problems.map((text) => `  ${text}`).join('\n')}`,
      problems.map((text) => ({ key: 'policy', text: `policy: ${text}` })),
    );
  }
  for (const warning of candidate.warnings) {
    logger.warn({ dir, policy: warning.policyId }, `policy: ${describeProblem(warning)}`);
  }
  return candidate.set;
}

function fingerprint(sources: PolicySources): string {
  return createHash('sha256').update(JSON.stringify(sources)).digest('hex');
}
