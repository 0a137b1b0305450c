/** From policy sources to a set that is safe to load, by way of a thread of its own. */
import { Worker } from 'node:worker_threads';
import type { CheckResult, PolicyProblem } from './cedarCheck.js';
import type { PolicySources } from './cedarFiles.js';
import { makePolicySet, type PolicySet } from './cedarSet.js';

/**
 * Stack of the thread, in MiB. Less than a server has (984 KiB on 64-bit systems), so that what is
 * nested too deeply fails here and not there; enough for 30 levels of brackets.
 */
const STACK_MIB = 0.75;

/** Milliseconds for one candidate. The largest that is read takes a few seconds. */
const CHECK_TIMEOUT_MS = 30_000;

export interface CandidateOptions {
  /** The built entry of the thread. Absent: the one beside this file. */
  readonly workerEntry?: URL;
}

export type Candidate =
  | { readonly ok: true; readonly set: PolicySet; readonly warnings: readonly PolicyProblem[] }
  | { readonly ok: false; readonly problems: readonly PolicyProblem[] };

/** Never rejects: whatever goes wrong is a problem of the candidate. */
export async function checkCandidate(
  sources: PolicySources,
  options: CandidateOptions = {},
): Promise<Candidate> {
  const result = await runWorker(sources, options);
  if (!result.ok) return result;
  return {
    ok: true,
    set: makePolicySet(sources.schema, result.policies),
    warnings: result.warnings,
  };
}

async function runWorker(sources: PolicySources, options: CandidateOptions): Promise<CheckResult> {
  const worker = new Worker(options.workerEntry ?? new URL('./cedarWorker.js', import.meta.url), {
    workerData: sources,
    resourceLimits: { stackSizeMb: STACK_MIB },
  });
  const failed = (message: string): CheckResult => ({ ok: false, problems: [{ message }] });
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise((resolve) => {
      worker.once('message', resolve);
      worker.once('error', (error) => resolve(failed(`the check crashed: ${error.message}`)));
      worker.once('exit', () => resolve(failed('the check ended without an answer')));
      timer = setTimeout(
        () => resolve(failed(`the check took over ${CHECK_TIMEOUT_MS} ms`)),
        CHECK_TIMEOUT_MS,
      );
    });
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}
