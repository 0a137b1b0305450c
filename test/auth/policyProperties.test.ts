import * as cedar from '@cedar-policy/cedar-wasm/nodejs';
import fc from 'fast-check';
import { openEngine } from '../../src/auth/cedarEngine.js';
import { CedarPolicy } from '../../src/auth/cedarPolicy.js';
import { makePolicySet, type PolicySet, type PolicyText } from '../../src/auth/cedarSet.js';
import { capabilities } from '../../src/core/capability.js';
import { request, schema } from '../policy/policyDirs.js';

const RUNS = 1_000;

const scope = fc.constantFrom(
  'principal, action, resource',
  ...capabilities.map((action) => `principal, action == Grantty::Action::"${action}", resource`),
);

/** Conditions that hold, do not hold, and fail to evaluate. */
const condition = fc.constantFrom(
  'true',
  'resource.owner == "0"',
  'resource.terminal == "t1"',
  'resource == Grantty::Terminal::"1000/coder/default/t1"',
  'principal.delegated',
  'context.peer.loopback',
  'context.proves_possession',
  'principal.actors.contains("a")',
  'principal.delegation_depth + 9223372036854775807 > 0',
  'context.launch.cwd == "/"',
  'context has signal && context.signal == "SIGKILL"',
);

const policyText = fc
  .tuple(fc.constantFrom('permit', 'forbid'), scope, condition, fc.constantFrom('when', 'unless'))
  .map(([effect, where, what, when]) => ({
    effect: effect as PolicyText['effect'],
    text: `${effect}(${where}) ${when} { ${what} };`,
  }));

const policies = fc
  .array(policyText, { maxLength: 3 })
  .map((texts) => texts.map((one, index): PolicyText => ({ id: `p${index}`, ...one })));

const asked = fc
  .record({
    principal: fc.record({
      issuer: fc.constant('https://issuer.test'),
      subject: fc.constantFrom('alice', 'bob'),
      actors: fc.constantFrom([], ['a'], ['b', 'a']),
    }),
    action: fc.constantFrom(...capabilities),
    resource: fc.record({
      owner: fc.constantFrom('0', '1000'),
      agent: fc.constant('coder'),
      session: fc.constant('default'),
      terminal: fc.constantFrom('t1', 't2'),
    }),
    peer: fc.constantFrom('127.0.0.1', '10.0.0.1', 'unix'),
    proves_possession: fc.boolean(),
    signal: fc.constantFrom('SIGINT', 'SIGKILL'),
    launch: fc.constantFrom(undefined, { command: ['/bin/sh'], cwd: '/' }),
  })
  .map(request);

function policyOf(set: PolicySet): CedarPolicy {
  return new CedarPolicy(set, { open: (one) => openEngine(one, cedar) });
}

describe('decisions by policy', () => {
  it('permit no more when a forbid is added', () => {
    let permitted = 0;
    let forbidden = 0;
    fc.assert(
      fc.property(policies, policyText, asked, (held, { text }, about) => {
        const forbid: PolicyText = {
          id: 'added',
          effect: 'forbid',
          text: text.replace(/^permit/, 'forbid'),
        };
        const after = policyOf(makePolicySet(schema, [...held, forbid])).decide(about);
        if (after.policyIds.includes('added')) forbidden += 1;
        if (!after.permit) return true;
        permitted += 1;
        return policyOf(makePolicySet(schema, held)).decide(about).permit;
      }),
      { numRuns: RUNS },
    );
    // Else the property would hold of nothing.
    expect(permitted).toBeGreaterThan(0);
    expect(forbidden).toBeGreaterThan(0);
  });

  it('permit nothing where any policy cannot be evaluated', () => {
    let failed = 0;
    fc.assert(
      fc.property(policies, asked, (held, about) => {
        const { permit, errors } = policyOf(makePolicySet(schema, held)).explain(about);
        if (errors.length > 0) failed += 1;
        return !permit || errors.length === 0;
      }),
      { numRuns: RUNS },
    );
    expect(failed).toBeGreaterThan(0);
  });

  it('are the same remembered as afresh', () => {
    fc.assert(
      fc.property(policies, fc.array(asked, { minLength: 1, maxLength: 4 }), (held, questions) => {
        const set = makePolicySet(schema, held);
        const policy = policyOf(set);
        for (const about of [...questions, ...questions]) {
          const { errors: _, ...afresh } = policy.explain(about);
          expect(policy.decide(about)).toEqual(afresh);
        }
      }),
      { numRuns: RUNS / 10 },
    );
  });
});
