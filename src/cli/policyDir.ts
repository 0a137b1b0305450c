/** What the `policy` commands share: a directory's policies, checked as a server would. */
import { type Candidate, checkCandidate } from '../auth/cedarCandidate.js';
import { describeProblem, type PolicyProblem } from '../auth/cedarCheck.js';
import { PACKAGED_POLICY_DIR, type PolicySources, readPolicySources } from '../auth/cedarFiles.js';
import type { PolicySet } from '../auth/cedarSet.js';
import { errorCode } from '../core/errors.js';
import { fileFailure } from '../core/fileFailure.js';

export interface CheckedDir {
  readonly dir: string;
  readonly candidate: Candidate;
}

export async function candidateOf(dir = PACKAGED_POLICY_DIR): Promise<CheckedDir> {
  return { dir, candidate: await checkCandidate(await sourcesOf(dir)) };
}

async function sourcesOf(dir: string): Promise<PolicySources> {
  try {
    return await readPolicySources(dir);
  } catch (error) {
    if (errorCode(error) === undefined) throw error;
    const message = `the policies in ${dir} cannot be read: ${fileFailure(error)}; name a directory of policies`;
    throw new Error(message, { cause: error });
  }
}

/** @throws Error that says what a server would refuse it for */
export async function setOf(given?: string): Promise<{ dir: string; set: PolicySet }> {
  const { dir, candidate } = await candidateOf(given);
  if (candidate.ok) return { dir, set: candidate.set };
  const lines = candidate.problems.map((problem) => `  ${problemLine(problem)}`);
  throw new Error(`the policies in ${dir} are not valid:\n${lines.join('\n')}`);
}

/** Controls in a policy's text could act on a terminal. */
export function problemLine(problem: PolicyProblem): string {
  return describeProblem(problem).replace(/[\p{Cc}\p{Cf}]/gu, '\ufffd');
}
