// Run by manyDecisions.test.ts: asks the packaged policies, in the built code, until V8 has compiled
// the way into WebAssembly. Prints how often they permitted.
import { checkCandidate } from '../../dist/auth/cedarCandidate.js';
import { PACKAGED_POLICY_DIR, readPolicySources } from '../../dist/auth/cedarFiles.js';
import { CedarPolicy } from '../../dist/auth/cedarPolicy.js';

const candidate = await checkCandidate(await readPolicySources(PACKAGED_POLICY_DIR));
if (!candidate.ok) throw new Error('the packaged policies are not sound');
const policy = new CedarPolicy(candidate.set);
const request = (actors, id) => ({
  principal: { issuer: 'i', subject: 's', clientId: 'c', actors },
  access: {
    action: 'terminal.read',
    target: { owner: '1000', agent: 'a', session: 's', id },
  },
  peer: { address: '127.0.0.1', provesPossession: false },
});

// What is kept changes where the engine allocates, for which it drops code that is in use.
const kept = [];
for (let count = 0; count < 3000; count += 1) {
  kept.push(policy.explain(request([`actor-${count % 7}`], `t${count}`)));
}
console.log(kept.filter(({ permit }) => permit).length);
