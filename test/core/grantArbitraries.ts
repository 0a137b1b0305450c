/** Grants and requests at random, as tokens write them and as decisions ask for them. */
import fc from 'fast-check';
import type { AccessRequest } from '../../src/core/access.js';
import { capabilities } from '../../src/core/capability.js';
import { GRANT_TYPE } from '../../src/core/grant.js';
import type { Name } from '../../src/core/names.js';
import { type SignalName, signalNumbers } from '../../src/core/signals.js';

/** Few enough that grants and requests meet often. */
const names = ['0', '00', '1000', 'coder', 'coder-2', 'default'] as const;
const name = fc.constantFrom(...names).map((text) => text as string as Name);
const selector = fc.constantFrom(...names, '*', '0*', '1*', 'c*', 'coder*');
const action = fc.constantFrom(...capabilities);
const signal = fc.constantFrom(...(Object.keys(signalNumbers) as SignalName[]));
const argv = fc.constantFrom(['/bin/sh'], ['/bin/sh', '-l'], ['/bin/true']);
const path = fc.constantFrom('/', '/workspace', '/workspace/a', '/srv//data/');

/** Seconds around which grants expire. */
export const NOW = 1_000_000;

const constraints = fc.record(
  {
    expires_at: fc.integer({ min: NOW - 1, max: NOW + 1 }),
    max_terminals: fc.nat(4),
    commands: fc.array(argv, { maxLength: 2 }),
    cwd_under: fc.array(path, { maxLength: 2 }),
    env_allow: fc.array(fc.constantFrom('*', 'MY_*', 'PATH', 'LD_*', 'EDITOR'), { maxLength: 3 }),
    signals: fc.array(signal, { maxLength: 3 }),
    signal_bytes: fc.constantFrom('allow', 'refuse'),
    write_bytes_per_second: fc.integer({ min: 1, max: 1000 }),
  },
  { requiredKeys: [] },
);

const resource = fc.record({
  owner: selector,
  agent: selector,
  session: selector,
  terminal: selector,
});

const writtenGrant = fc.record(
  { actions: fc.array(action), resource, constraints },
  { requiredKeys: ['actions', 'resource'] },
);

/** `authorization_details` that parse. */
export const writtenGrants = fc
  .array(writtenGrant, { maxLength: 5 })
  .map((grants) => grants.map((grant, index) => ({ type: GRANT_TYPE, id: `g${index}`, ...grant })));

export const accessRequest: fc.Arbitrary<AccessRequest> = fc.record(
  {
    action,
    target: fc.record({ owner: name, agent: name, session: name, id: name }),
    also: fc.array(action, { maxLength: 1 }),
    launch: fc.record({
      command: argv,
      cwd: fc.constantFrom('/', '/workspace', '/workspace/a/b', '/workspaces', '/a/../b'),
      envNames: fc.array(fc.constantFrom('LANG', 'MY_X', 'PATH', 'LD_PRELOAD', 'USER')),
    }),
    signal,
    signalBytes: fc.uniqueArray(fc.constantFrom<SignalName>('SIGINT', 'SIGQUIT', 'SIGTSTP')),
  },
  { requiredKeys: ['action', 'target'] },
);
