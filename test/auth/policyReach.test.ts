import * as cedar from '@cedar-policy/cedar-wasm/nodejs';
import { checkCandidate } from '../../src/auth/cedarCandidate.js';
import { type Engine, openEngine } from '../../src/auth/cedarEngine.js';
import { PACKAGED_POLICY_DIR, readPolicySources } from '../../src/auth/cedarFiles.js';
import { CedarPolicy } from '../../src/auth/cedarPolicy.js';
import { partsRead } from '../../src/auth/cedarReach.js';
import { request, uncheckedSet, workerEntry } from '../policy/policyDirs.js';

const ALL = ['owner', 'agent', 'session', 'terminal'];
const forbid = (scope: string, rest = '') => `p: forbid(principal, action, ${scope})${rest};`;
const when = (condition: string) => forbid('resource', ` when { ${condition} }`);

describe('what policies look at of a terminal', () => {
  it.each([
    ['nothing of it', forbid('resource'), []],
    ['its type', forbid('resource is Grantty::Terminal'), []],
    ['one attribute', when('resource.owner == "0"'), ['owner']],
    ['one by its name in quotes', when('resource["terminal"] like "a*"'), ['terminal']],
    ['whether one is there', when('resource has session'), ['session']],
    [
      'several, in a set, a record and a branch',
      when(
        '["x"].contains(resource.agent) && (if {a: resource.session}.a == "y" then true else resource.owner == "0")',
      ),
      ['owner', 'agent', 'session'],
    ],
    ['what would be run', when('context has launch && context.launch.cwd == "/"'), []],
    ['the client', when('principal == Grantty::Client::"c" && principal.delegated'), []],
    ['the whole', when('resource == Grantty::Terminal::"0/a/b/c"'), ALL],
    ['the whole, in a set', when('[resource].contains(resource)'), ALL],
    ['one that is named', when('Grantty::Terminal::"0/a/b/c" has owner'), ALL],
    ['one that is named in the head', forbid('resource == Grantty::Terminal::"0/a/b/c"'), ALL],
    ['what is in one', forbid('resource in Grantty::Terminal::"0/a/b/c"'), ALL],
    [
      'what is of a type and in one',
      forbid('resource is Grantty::Terminal in Grantty::Terminal::"0/a/b/c"'),
      ALL,
    ],
    ['an attribute that is not in the schema', when('resource.colour == "red"'), ALL],
  ])('sees %s', (_, policy, parts) => {
    expect(new Set(partsRead(uncheckedSet(policy), cedar))).toEqual(new Set(parts));
  });

  it('is the owner alone for those that come with the program', async () => {
    const packaged = await checkCandidate(await readPolicySources(PACKAGED_POLICY_DIR), {
      workerEntry,
    });
    if (!packaged.ok) throw new Error('the packaged policies do not hold');
    expect([...partsRead(packaged.set, cedar)]).toEqual(['owner']);
  });

  it('lets one answer do for terminals that are alike in it, and for no others', () => {
    const set = uncheckedSet(
      'p: permit(principal, action, resource) when { resource.agent == "a" };',
    );
    let asked = 0;
    const policy = new CedarPolicy(set, {
      open: (one) => {
        const engine = openEngine(one, cedar);
        const counting: Engine = (question) => {
          asked += 1;
          return engine(question);
        };
        return Object.assign(counting, { reads: engine.reads });
      },
    });
    const decide = (agent: string, terminal: string) =>
      policy.decide(request({ resource: { owner: '7', agent, session: 's', terminal } })).permit;
    expect([decide('a', 't1'), decide('a', 't2'), asked]).toEqual([true, true, 1]);
    expect([decide('b', 't1'), decide('b', 't2'), asked]).toEqual([false, false, 2]);
    policy.swap(
      uncheckedSet('p: permit(principal, action, resource) when { resource.terminal == "t1" };'),
    );
    expect([decide('a', 't1'), decide('a', 't2'), decide('b', 't1'), asked]).toEqual([
      true,
      false,
      true,
      4,
    ]);
  });
});
