/** Tokens that a verifier must accept, with what it must understand by them. */
import { madeOnce } from './madeOnce.js';
import {
  base64url,
  type Members,
  NOW,
  ofSize,
  signed,
  soundClaims,
  soundGrant,
  soundHeader,
  withClaims,
  withConstraints,
  withGrant,
  withHeader,
  withPayload,
} from './vectorForge.js';

export interface AcceptedVector {
  readonly name: string;
  readonly token: string;
  /** Seconds since the Unix epoch. */
  readonly now: number;
  readonly expect: {
    readonly kid: string;
    readonly sub: string;
    readonly exp: number;
    readonly x5tS256?: string;
    /** `authorization_details` in normalised form. */
    readonly grants: readonly unknown[];
  };
}

const normalGrant: Members = {
  ...soundGrant,
  constraints: { env_allow: [], signal_bytes: 'refuse' },
};

const usual = { kid: 'ed', sub: 'alice', exp: NOW + 600, grants: [normalGrant] };

function accepted(
  name: string,
  token: string,
  expect: Partial<AcceptedVector['expect']> = {},
  now = NOW,
): AcceptedVector {
  return { name, token, now, expect: { ...usual, ...expect } };
}

function madeOnceToken(algorithm: keyof typeof madeOnce): string {
  const { header, signature } = madeOnce[algorithm];
  return [
    base64url(JSON.stringify(header)),
    base64url(JSON.stringify(soundClaims)),
    signature,
  ].join('.');
}

function constrained(name: string, written: Members, normal: Members): AcceptedVector {
  const constraints = { env_allow: [], signal_bytes: 'refuse', ...normal };
  return accepted(name, withConstraints(written), { grants: [{ ...soundGrant, constraints }] });
}

/** Small enough that 32 of them fit into a token. */
const smallGrants = Array.from({ length: 32 }, (_, index) => ({
  type: soundGrant.type,
  id: `g${index}`,
  actions: ['terminal.read'],
  resource: { owner: '1000', agent: '*', session: '*', terminal: '*' },
}));

const thumbprint = 'bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg0';

export const acceptedVectors: readonly AcceptedVector[] = [
  accepted('alg EdDSA', withHeader({})),
  accepted('alg Ed25519', withHeader({ alg: 'Ed25519' })),
  accepted('alg ES256', madeOnceToken('ES256'), { kid: 'ec' }),
  accepted('alg RS256', madeOnceToken('RS256'), { kid: 'rsa' }),
  accepted('8192 bytes', ofSize(8192)),
  accepted(
    'white space and another order of members',
    signed(
      '{ "kid": "ed", "typ": "at+jwt",\n"alg": "EdDSA" }',
      JSON.stringify(Object.fromEntries(Object.entries(soundClaims).reverse()), null, 2),
    ),
  ),
  accepted(
    'escaped characters of a name',
    withPayload(JSON.stringify(soundClaims).replace('"sub"', '"\\u0073ub"')),
  ),
  accepted(
    'same name in two objects',
    withClaims({ extra: { sub: 'bob', iss: [{ iss: 1 }, { iss: 2 }] } }),
  ),
  accepted(
    'claims that nobody here knows',
    withClaims({ scope: 'openid', auth_time: NOW, roles: ['a'] }),
  ),
  accepted('subject in another script', withClaims({ sub: '\u30a2\u30ea\u30b9' }), {
    sub: '\u30a2\u30ea\u30b9',
  }),
  accepted('iat 30 seconds ahead', withClaims({ iat: NOW + 30 })),
  accepted('nbf 30 seconds ahead', withClaims({ nbf: NOW + 30 })),
  accepted('lifetime of an hour', withClaims({ exp: NOW + 3600 }), { exp: NOW + 3600 }),
  accepted('last second', withHeader({}), {}, NOW + 599),
  accepted('bound to a certificate', withClaims({ cnf: { 'x5t#S256': thumbprint } }), {
    x5tS256: thumbprint,
  }),
  accepted('no grants', withClaims({ authorization_details: [] }), { grants: [] }),
  accepted('a grant without actions', withGrant({ actions: [] }), {
    grants: [{ ...normalGrant, actions: [] }],
  }),
  accepted(
    'actions twice and in another order',
    withGrant({
      actions: ['terminal.write', 'terminal.read', 'terminal.write'],
    }),
  ),
  accepted('32 grants', withClaims({ authorization_details: smallGrants }), {
    grants: smallGrants.map((grant) => ({ ...grant, constraints: normalGrant.constraints })),
  }),
  constrained('constraints empty', {}, {}),
  constrained(
    'lists empty',
    { commands: [], cwd_under: [], env_allow: [], signals: [] },
    { commands: [], cwd_under: [], signals: [] },
  ),
  constrained(
    'numbers at their least',
    { expires_at: 0, max_terminals: 0, write_bytes_per_second: 1 },
    { expires_at: 0, max_terminals: 0, write_bytes_per_second: 1 },
  ),
  constrained('signal_bytes allow', { signal_bytes: 'allow' }, { signal_bytes: 'allow' }),
  constrained(
    'every constraint, lists sorted and without doubles',
    {
      expires_at: NOW + 86_400,
      max_terminals: 3,
      commands: [['/ctx/bin/tsh'], ['/bin/sh', '-c', 'make'], ['/ctx/bin/tsh']],
      cwd_under: ['/workspace/', '/workspace', '//srv/./data//'],
      env_allow: ['MY_*', 'LANG', 'MY_*'],
      signals: ['SIGTERM', 'SIGINT', 'SIGINT'],
      signal_bytes: 'refuse',
      write_bytes_per_second: 65_536,
    },
    {
      expires_at: NOW + 86_400,
      max_terminals: 3,
      commands: [['/bin/sh', '-c', 'make'], ['/ctx/bin/tsh']],
      cwd_under: ['/srv/data', '/workspace'],
      env_allow: ['LANG', 'MY_*'],
      signals: ['SIGINT', 'SIGTERM'],
      write_bytes_per_second: 65_536,
    },
  ),
  accepted('kid of the key that is bound to EdDSA', withHeader({ kid: 'eddsa-only' }), {
    kid: 'eddsa-only',
  }),
  accepted(
    'header from which nothing may be read twice',
    signed(JSON.stringify(soundHeader), JSON.stringify(soundClaims)),
  ),
];
