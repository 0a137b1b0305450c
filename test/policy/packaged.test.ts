import * as cedar from '@cedar-policy/cedar-wasm/nodejs';
import { checkCandidate } from '../../src/auth/cedarCandidate.js';
import { PACKAGED_POLICY_DIR, readPolicySources } from '../../src/auth/cedarFiles.js';
import { CedarPolicy } from '../../src/auth/cedarPolicy.js';
import { questionsOf } from '../../src/auth/cedarRequest.js';
import { failuresOf, readTables, unguardedForbids } from '../../src/auth/cedarTable.js';
import { capabilities } from '../../src/core/capability.js';
import { request, workerEntry } from './policyDirs.js';

const candidate = await checkCandidate(await readPolicySources(PACKAGED_POLICY_DIR), {
  workerEntry,
});
if (!candidate.ok) throw new Error(JSON.stringify(candidate.problems));
const { set, warnings } = candidate;
const cases = await readTables(PACKAGED_POLICY_DIR);

describe('the packaged policies', () => {
  it('are valid without a warning', () => {
    expect(warnings).toEqual([]);
  });

  it.each(cases.map((one) => [one.name, one] as const))('decide: %s', (_, one) => {
    expect(failuresOf(set, [one])).toEqual([]);
  });

  it('have no forbid that could be lost without a case failing', () => {
    expect(set.policies.filter(({ effect }) => effect === 'forbid')).not.toEqual([]);
    expect(unguardedForbids(set, cases)).toEqual([]);
  });

  it('show a forbid that no case misses', () => {
    const without = cases.filter(({ policies }) => !policies.includes('root-needs-proof'));
    expect(unguardedForbids(set, without)).toEqual(['root-needs-proof']);
  });

  it('permit every action to a developer on this host, the superuser included', () => {
    const policy = new CedarPolicy(set);
    const launch = { command: ['/bin/sh'], cwd: '/', env_names: ['LD_PRELOAD'] };
    for (const owner of ['0', '1000']) {
      const resource = { owner, agent: 'coder', session: 'default', terminal: 't1' };
      for (const action of capabilities) {
        expect(policy.decide(request({ action, resource })).permit).toBe(true);
      }
      const create = request({ action: 'terminal.create', resource, launch });
      expect(policy.decide(create).permit).toBe(true);
      const kill = request({ action: 'terminal.signal', resource, signal: 'SIGKILL' });
      expect(policy.decide(kill).permit).toBe(true);
    }
  });
});

describe('the schema', () => {
  const asked = [
    ...capabilities.map((action) => request({ action })),
    request({ peer: 'unix', proves_possession: true }),
    request({ peer: '2001:db8::1' }),
    request({ principal: { issuer: 'i', subject: 's', client_id: 'c', actors: ['b', 'a'] } }),
    request({ action: 'terminal.write', raises: ['SIGINT', 'SIGQUIT'] }),
    request({ action: 'terminal.signal', signal: 'SIGKILL' }),
    request({ action: 'terminal.create', also: ['terminal.kill'] }),
    request({
      action: 'terminal.create',
      launch: { command: ['/bin/sh', '-c', 'a'], cwd: '/', env_names: ['A'] },
    }),
  ].flatMap(questionsOf);

  it('says what the server asks', () => {
    for (const question of asked) {
      const answer = cedar.isAuthorized({
        ...question,
        schema: set.schema,
        validateRequest: true,
        policies: { staticPolicies: {} },
      });
      expect(answer.type === 'failure' ? answer.errors : []).toEqual([]);
    }
  });

  it('would show a question that it does not know', () => {
    const [question] = asked;
    if (question === undefined) throw new Error('nothing is asked');
    const answer = cedar.isAuthorized({
      ...question,
      context: { ...question.context, now: 1 },
      schema: set.schema,
      validateRequest: true,
      policies: { staticPolicies: {} },
    });
    expect(answer.type).toBe('failure');
  });
});
