/** Policies for tests: sources, checked sets, requests, directories. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Candidate, checkCandidate } from '../../src/auth/cedarCandidate.js';
import { PACKAGED_POLICY_DIR, readPolicySources } from '../../src/auth/cedarFiles.js';
import { makePolicySet, type PolicySet } from '../../src/auth/cedarSet.js';
import type { PolicyRequest } from '../../src/auth/policy.js';
import { parsePolicyRequest } from '../../src/auth/policyRequestJson.js';

/** Threads run what was built. */
export const workerEntry = new URL('../../dist/auth/cedarWorker.js', import.meta.url);

const { schema } = await readPolicySources(PACKAGED_POLICY_DIR);

export { schema };

export const permitAll = '@id("all") permit(principal, action, resource);';

/** Too deep for any instance: one that parses it is broken from then on. */
export const tooDeep = nested(20_000);

export function nested(levels: number): string {
  const condition = `${'('.repeat(levels)}true${')'.repeat(levels)}`;
  return `@id("deep") permit(principal, action, resource) when { ${condition} };`;
}

export function check(...texts: readonly string[]): Promise<Candidate> {
  const files = texts.map((text, index) => ({ name: `${index}.cedar`, text }));
  return checkCandidate({ schema, files }, { workerEntry });
}

/** A set that nobody has checked, of policies that begin with their id: `name: permit(...);`. */
export function uncheckedSet(...policies: readonly string[]): PolicySet {
  return makePolicySet(
    schema,
    policies.map((written) => {
      const [, id = '', text = ''] = /^(\w+): (.*)$/s.exec(written) ?? [];
      return { id, text, effect: text.startsWith('forbid') ? 'forbid' : 'permit' };
    }),
  );
}

/** alice reads a terminal of owner 1000 from this host, but for what is given. */
export function request(given: Readonly<Record<string, unknown>> = {}): PolicyRequest {
  return parsePolicyRequest({
    principal: { issuer: 'https://issuer.test', subject: 'alice' },
    action: 'terminal.read',
    resource: { owner: '1000', agent: 'coder', session: 'default', terminal: 't1' },
    ...given,
  });
}

export async function writePolicies(dir: string, text: string): Promise<void> {
  await writeFile(join(dir, 'policies.cedar'), text);
}
