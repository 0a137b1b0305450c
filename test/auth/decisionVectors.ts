/** Requests against grants, and which grant covers them or why each does not. */
import type { Uncovered } from '../../src/core/grant.js';
import { type Members, NOW, soundGrant } from './vectorForge.js';

interface Launch {
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env_names: readonly string[];
}

export interface DecisionVector {
  readonly name: string;
  /** `authorization_details` of the token. */
  readonly grants: readonly unknown[];
  readonly request: {
    readonly action: string;
    /** Further actions that the same grant must hold. */
    readonly also?: readonly string[];
    readonly target: { owner: string; agent: string; session: string; terminal: string };
    readonly launch?: Launch;
    readonly signal?: string;
    /** Input bytes, hex: only those that raise signals matter. */
    readonly input?: string;
  };
  /** Seconds since the Unix epoch. */
  readonly now: number;
  readonly expect:
    | { readonly grant: string }
    | { readonly refused: Readonly<Record<string, Uncovered>>; readonly required_action: string };
}

const target = {
  owner: '1000',
  agent: 'coder',
  session: 'default',
  terminal: 'terminal-coder-default',
};
const shell: Launch = { command: ['/bin/sh', '-l'], cwd: '/workspace', env_names: [] };

function grant(changes: Members): Members {
  return { ...soundGrant, ...changes };
}

type Request = Partial<DecisionVector['request']>;
const read: Request = { action: 'terminal.read' };
const write: Request = { action: 'terminal.write' };
const create: Request = { action: 'terminal.create', launch: shell };

function covered(
  name: string,
  request: Request,
  grants: readonly Members[],
  by = 'g1',
  now = NOW,
): DecisionVector {
  return vector(name, request, grants, { grant: by }, now);
}

function refused(
  name: string,
  request: Request,
  grants: readonly Members[],
  why: Readonly<Record<string, Uncovered>>,
  requiredAction = request.action ?? '',
  now = NOW,
): DecisionVector {
  return vector(name, request, grants, { refused: why, required_action: requiredAction }, now);
}

function vector(
  name: string,
  request: Request,
  grants: readonly Members[],
  expect: DecisionVector['expect'],
  now: number,
): DecisionVector {
  return { name, grants, request: { action: '', target, ...request }, now, expect };
}

function constrained(constraints: Members): readonly Members[] {
  return [
    grant({ actions: ['terminal.create', 'terminal.write', 'terminal.signal'], constraints }),
  ];
}

function launching(changes: Partial<Launch>): Request {
  return { ...create, launch: { ...shell, ...changes } };
}

const owned = (owner: string) => ({ ...(soundGrant.resource as Members), owner });
const named = (terminal: string) => ({ ...(soundGrant.resource as Members), terminal });

const actionsAndResources: readonly DecisionVector[] = [
  covered('the action and the terminal of one grant', read, [grant({})]),
  refused('an action that the grant lacks', { action: 'terminal.kill' }, [grant({})], {
    g1: 'action',
  }),
  refused('nothing without a grant', read, [], {}),
  refused('write does not give read', read, [grant({ actions: ['terminal.write'] })], {
    g1: 'action',
  }),
  refused(
    'the action of one grant on the resource of another',
    write,
    [
      grant({ id: 'a', actions: ['terminal.write'], resource: owned('2000') }),
      grant({ id: 'b', actions: ['terminal.read'] }),
    ],
    { a: 'resource', b: 'action' },
  ),
  refused(
    'two actions that only two grants together hold',
    { action: 'terminal.create', also: ['terminal.kill'] },
    [
      grant({ id: 'a', actions: ['terminal.create'] }),
      grant({ id: 'b', actions: ['terminal.kill'] }),
    ],
    { a: 'action', b: 'action' },
    'terminal.create',
  ),
  covered(
    'the second grant, when the first does not reach so far',
    read,
    [grant({ id: 'a', resource: named('other') }), grant({ id: 'b' })],
    'b',
  ),
  refused('an exact name is no prefix', read, [grant({ resource: named('terminal') })], {
    g1: 'resource',
  }),
  covered('a prefix', read, [grant({ resource: named('terminal-*') })]),
  covered('a prefix that is the whole name', read, [
    grant({ resource: named('terminal-coder-default*') }),
  ]),
  refused('a prefix of something else', read, [grant({ resource: named('terminal-d*') })], {
    g1: 'resource',
  }),
  refused('names differ by case', read, [grant({ resource: named('Terminal-*') })], {
    g1: 'resource',
  }),
  refused(
    'the owner 0 under a wildcard',
    { ...read, target: { ...target, owner: '0' } },
    [grant({ id: 'a', resource: owned('*') }), grant({ id: 'b', resource: owned('0*') })],
    { a: 'resource', b: 'resource' },
  ),
  covered('the owner 0 by name', { ...read, target: { ...target, owner: '0' } }, [
    grant({ resource: owned('0') }),
  ]),
  covered('the owner 01 under a wildcard', { ...read, target: { ...target, owner: '01' } }, [
    grant({ resource: owned('0*') }),
  ]),
  covered('the agent 0 under a wildcard', { ...read, target: { ...target, agent: '0' } }, [
    grant({ resource: { owner: '1000', agent: '*', session: '*', terminal: '*' } }),
  ]),
];

const eachSelector: readonly DecisionVector[] = ['owner', 'agent', 'session', 'terminal'].map(
  (name) =>
    refused(
      `another ${name}`,
      read,
      [grant({ resource: { ...(soundGrant.resource as Members), [name]: 'other' } })],
      { g1: 'resource' },
    ),
);

const ofTime: readonly DecisionVector[] = [
  covered('the last second of a grant', write, constrained({ expires_at: NOW + 1 })),
  refused('a grant that expires this second', write, constrained({ expires_at: NOW }), {
    g1: 'expires_at',
  }),
  covered(
    'a grant that lasts, beside one that is over',
    write,
    [grant({ id: 'a', constraints: { expires_at: NOW - 1 } }), grant({ id: 'b' })],
    'b',
  ),
];

const ofLaunch: readonly DecisionVector[] = [
  covered('any command when commands are not limited', create, constrained({})),
  refused('no command when the list is empty', create, constrained({ commands: [] }), {
    g1: 'commands',
  }),
  covered('the very argv', create, constrained({ commands: [['/bin/true'], ['/bin/sh', '-l']] })),
  refused('an argv with one element more', create, constrained({ commands: [['/bin/sh']] }), {
    g1: 'commands',
  }),
  refused(
    'an argv with one element less',
    create,
    constrained({ commands: [['/bin/sh', '-l', '-c']] }),
    { g1: 'commands' },
  ),
  refused('another argument', create, constrained({ commands: [['/bin/sh', '-c']] }), {
    g1: 'commands',
  }),
  refused(
    'the command by its bare name',
    launching({ command: ['sh', '-l'] }),
    constrained({ commands: [['/bin/sh', '-l']] }),
    { g1: 'commands' },
  ),
  refused(
    'the command by another path',
    launching({ command: ['/bin/../bin/sh', '-l'] }),
    constrained({ commands: [['/bin/sh', '-l']] }),
    { g1: 'commands' },
  ),
  covered('the root itself as cwd', create, constrained({ cwd_under: ['/workspace/'] })),
  covered(
    'a cwd below',
    launching({ cwd: '/workspace/a/b/' }),
    constrained({ cwd_under: ['/workspace'] }),
  ),
  covered('any cwd below /', create, constrained({ cwd_under: ['/'] })),
  refused('no cwd when the list is empty', create, constrained({ cwd_under: [] }), {
    g1: 'cwd_under',
  }),
  refused(
    'a cwd that only begins as the root',
    launching({ cwd: '/workspace2' }),
    constrained({ cwd_under: ['/workspace'] }),
    { g1: 'cwd_under' },
  ),
  refused('a cwd above', launching({ cwd: '/' }), constrained({ cwd_under: ['/workspace'] }), {
    g1: 'cwd_under',
  }),
  refused(
    'a cwd that climbs out',
    launching({ cwd: '/workspace/../etc' }),
    constrained({ cwd_under: ['/workspace'] }),
    { g1: 'cwd_under' },
  ),
  refused(
    'a cwd that climbs and comes back',
    launching({ cwd: '/workspace/../workspace' }),
    constrained({ cwd_under: ['/'] }),
    { g1: 'cwd_under' },
  ),
  refused('a relative cwd', launching({ cwd: 'workspace' }), constrained({ cwd_under: ['/'] }), {
    g1: 'cwd_under',
  }),
  covered(
    'free variables without env_allow',
    launching({ env_names: ['LANG', 'LC_ALL', 'TZ', 'TERM', 'COLORTERM'] }),
    constrained({}),
  ),
  refused(
    'another variable without env_allow',
    launching({ env_names: ['LANG', 'MY_X'] }),
    constrained({}),
    { g1: 'env_allow' },
  ),
  covered(
    'variables by name and by prefix',
    launching({ env_names: ['EDITOR', 'MY_X', 'MY_'] }),
    constrained({ env_allow: ['EDITOR', 'MY_*'] }),
  ),
  refused(
    'a variable beyond the prefix',
    launching({ env_names: ['MYX'] }),
    constrained({ env_allow: ['MY_*'] }),
    { g1: 'env_allow' },
  ),
  ...[
    'LD_PRELOAD',
    'DYLD_INSERT_LIBRARIES',
    'PATH',
    'HOME',
    'BASH_ENV',
    'ENV',
    'NODE_OPTIONS',
    'PYTHONPATH',
    'PERL5LIB',
    'GIT_SSH',
    'JAVA_TOOL_OPTIONS',
  ].flatMap((name) => [
    refused(
      `${name} under wildcards`,
      launching({ env_names: [name] }),
      constrained({ env_allow: ['*', `${name}*`, `${name.slice(0, 3)}*`] }),
      { g1: 'env_allow' },
    ),
    covered(
      `${name} by name`,
      launching({ env_names: [name] }),
      constrained({ env_allow: [name] }),
    ),
  ]),
  ...['USER', 'LOGNAME', 'SHELL', 'CTX_AGENT', 'CTX_SESSION', 'CTX_TERMINAL', 'CTX_INSTANCE'].map(
    (name) =>
      refused(
        `${name} even by name`,
        launching({ env_names: [name] }),
        constrained({ env_allow: [name, '*'] }),
        { g1: 'env_allow' },
      ),
  ),
  covered(
    'a create that starts nothing is not judged by commands',
    { action: 'terminal.create' },
    constrained({ commands: [], cwd_under: [] }),
  ),
];

const signals = ['SIGINT', 'SIGTERM'];

const ofSignals: readonly DecisionVector[] = [
  covered(
    'any signal when signals are not limited',
    { action: 'terminal.signal', signal: 'SIGUSR1' },
    constrained({}),
  ),
  covered(
    'a signal of the list',
    { action: 'terminal.signal', signal: 'SIGTERM' },
    constrained({ signals }),
  ),
  refused(
    'a signal beyond the list',
    { action: 'terminal.signal', signal: 'SIGHUP' },
    constrained({ signals }),
    { g1: 'signals' },
  ),
  refused('a signal that is not named', { action: 'terminal.signal' }, constrained({ signals }), {
    g1: 'signals',
  }),
  refused(
    'no signal when the list is empty',
    { action: 'terminal.signal', signal: 'SIGINT' },
    constrained({ signals: [] }),
    { g1: 'signals' },
  ),
  refused(
    'SIGKILL without terminal.kill',
    { action: 'terminal.signal', signal: 'SIGKILL' },
    constrained({}),
    { g1: 'action' },
    'terminal.kill',
  ),
  covered('SIGKILL with terminal.kill', { action: 'terminal.signal', signal: 'SIGKILL' }, [
    grant({ actions: ['terminal.signal', 'terminal.kill'] }),
  ]),
  refused(
    'SIGKILL with terminal.kill in a second grant',
    { action: 'terminal.signal', signal: 'SIGKILL' },
    [
      grant({ id: 'a', actions: ['terminal.signal'] }),
      grant({ id: 'b', actions: ['terminal.kill'] }),
    ],
    { a: 'action', b: 'action' },
  ),
  refused(
    'SIGKILL beyond the list',
    { action: 'terminal.signal', signal: 'SIGKILL' },
    [grant({ actions: ['terminal.signal', 'terminal.kill'], constraints: { signals } })],
    { g1: 'signals' },
  ),
];

const writer = grant({ id: 'w', actions: ['terminal.write'] });
const signaller = grant({ id: 's', actions: ['terminal.signal'] });

const ofSignalBytes: readonly DecisionVector[] = [
  covered('input without signal bytes', { ...write, input: '6c730d041b5b41' }, [writer], 'w'),
  ...[
    ['03', '^C'],
    ['1c', '^\\'],
    ['1a', '^Z'],
    ['6c7303', '^C after text'],
  ].flatMap(([input = '', name]) => [
    refused(
      `${name} with terminal.write alone`,
      { ...write, input },
      [writer],
      { w: 'signal_bytes' },
      'terminal.signal',
    ),
    covered(
      `${name} with signal_bytes allow`,
      { ...write, input },
      [{ ...writer, constraints: { signal_bytes: 'allow' } }],
      'w',
    ),
    covered(
      `${name} with terminal.signal in the same grant`,
      { ...write, input },
      [grant({ id: 'w', actions: ['terminal.write', 'terminal.signal'] })],
      'w',
    ),
    covered(
      `${name} with terminal.signal in another grant`,
      { ...write, input },
      [writer, signaller],
      'w',
    ),
  ]),
  refused(
    '^C with a grant for other signals',
    { ...write, input: '03' },
    [writer, { ...signaller, constraints: { signals: ['SIGQUIT', 'SIGTSTP'] } }],
    { w: 'signal_bytes', s: 'action' },
    'terminal.signal',
  ),
  covered(
    '^Z with a grant for SIGTSTP',
    { ...write, input: '1a' },
    [writer, { ...signaller, constraints: { signals: ['SIGTSTP'] } }],
    'w',
  ),
  refused(
    '^C and ^Z with a grant for one of them',
    { ...write, input: '031a' },
    [writer, { ...signaller, constraints: { signals: ['SIGINT'] } }],
    { w: 'signal_bytes', s: 'action' },
    'terminal.signal',
  ),
  covered(
    '^C and ^Z with a grant for each',
    { ...write, input: '031a' },
    [
      writer,
      { ...signaller, constraints: { signals: ['SIGINT'] } },
      { ...signaller, id: 't', constraints: { signals: ['SIGTSTP'] } },
    ],
    'w',
  ),
  refused(
    '^C with terminal.signal for another terminal',
    { ...write, input: '03' },
    [writer, { ...signaller, resource: named('other') }],
    { w: 'signal_bytes', s: 'action' },
    'terminal.signal',
  ),
  refused(
    '^C with terminal.signal that is over',
    { ...write, input: '03' },
    [writer, { ...signaller, constraints: { expires_at: NOW } }],
    { w: 'signal_bytes', s: 'action' },
    'terminal.signal',
  ),
  refused(
    '^C with terminal.signal but without terminal.write',
    { ...write, input: '03' },
    [signaller],
    { s: 'action' },
  ),
];

export const decisionVectors: readonly DecisionVector[] = [
  ...actionsAndResources,
  ...eachSelector,
  ...ofTime,
  ...ofLaunch,
  ...ofSignals,
  ...ofSignalBytes,
];
