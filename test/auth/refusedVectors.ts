/** Tokens that a verifier must refuse, each wrong in one way. */
import { createHmac } from 'node:crypto';
import {
  AUDIENCE,
  base64url,
  ISSUER,
  key,
  type Members,
  NOW,
  OTHER_ISSUER,
  ofSize,
  otherKey,
  replacePart,
  signed,
  soundClaims,
  soundGrant,
  soundHeader,
  strangerKey,
  withClaims,
  withConstraints,
  withGrant,
  withHeader,
  withPayload,
  withResource,
} from './vectorForge.js';

export interface RefusedVector {
  readonly name: string;
  readonly token: string;
  /** Seconds since the Unix epoch. */
  readonly now: number;
  readonly reason: 'TOKEN_INVALID' | 'TOKEN_EXPIRED';
  /** The part that is wrong: our message names it, so that no vector is refused for another fault. */
  readonly where: string;
}

type Row = readonly [name: string, where: string, token: string];

const claimsText = JSON.stringify(soundClaims);
const headerText = JSON.stringify(soundHeader);
const sound = signed(headerText, claimsText);

function hs256(secret: string | Uint8Array): string {
  const header = JSON.stringify({ ...soundHeader, alg: 'HS256' });
  const text = `${base64url(header)}.${base64url(claimsText)}`;
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}

/** The same bytes in base64url, but for a bit that the last character leaves over. */
function withLeftOverBit(part: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return part.slice(0, -1) + alphabet[alphabet.indexOf(part.slice(-1)) + 1];
}

function cutShort(part: string): string {
  return base64url(Buffer.from(part, 'base64url').subarray(0, -3));
}

const form: readonly Row[] = [
  ['empty token', 'three parts', ''],
  ['one part', 'three parts', 'token'],
  ['two parts', 'three parts', sound.split('.').slice(0, 2).join('.')],
  ['four parts', 'three parts', `${sound}.e30`],
  ['JSON serialisation', 'three parts', JSON.stringify({ payload: base64url(claimsText) })],
  ['8193 bytes', 'exceeds 8192 bytes', ofSize(8193)],
  ['9 KiB', 'exceeds 8192 bytes', ofSize(9 * 1024)],
  ['empty header', 'header', replacePart(sound, 0, () => '')],
  ['empty payload', 'payload', replacePart(sound, 1, () => '')],
  ['empty signature', 'signature', replacePart(sound, 2, () => '')],
  ['padded signature', 'signature', `${sound}==`],
  ['padded payload', 'payload', replacePart(sound, 1, (part) => `${part}=`)],
  ['signature with a line end', 'signature', `${sound}\n`],
  ['signature with a left-over bit', 'signature', replacePart(sound, 2, withLeftOverBit)],
  [
    'signature in base64 of the plus and slash kind',
    'signature',
    replacePart(sound, 2, () => '+/+/'),
  ],
  ['header that is no JSON', 'header', signed('{"alg":', claimsText)],
  ['header that is no object', 'header', signed('"EdDSA"', claimsText)],
  [
    'header with a member twice',
    'header',
    signed(`{"alg":"none",${headerText.slice(1)}`, claimsText),
  ],
  ['payload that is no JSON', 'payload', withPayload('sub=alice')],
  ['payload that is an array', 'payload', withPayload(`[${claimsText}]`)],
  ['payload that is a string', 'payload', withPayload(JSON.stringify(claimsText))],
  ['payload that is null', 'payload', withPayload('null')],
  ['payload with a byte order mark', 'payload', withPayload(`\uFEFF${claimsText}`)],
  [
    'payload that is not UTF-8',
    'payload',
    withPayload(Buffer.from(claimsText.replace('alice', '\xff'), 'latin1')),
  ],
  ['payload with something after it', 'payload', withPayload(`${claimsText}{}`)],
  ['claim twice', 'payload', withPayload(`{"sub":"root",${claimsText.slice(1)}`)],
  [
    'claim twice, once escaped',
    'payload',
    withPayload(`{"\\u0073ub":"root",${claimsText.slice(1)}`),
  ],
  [
    'member of a grant twice',
    'payload',
    withPayload(claimsText.replace('"owner"', '"owner":"*","owner"')),
  ],
  ['unknown claim twice', 'payload', withPayload(`{"x":1,"x":1,${claimsText.slice(1)}`)],
];

const header: readonly Row[] = [
  [
    'alg none without signature',
    'signature',
    replacePart(withHeader({ alg: 'none' }), 2, () => ''),
  ],
  ['alg none with signature', 'header.alg', withHeader({ alg: 'none' })],
  ['alg None', 'header.alg', withHeader({ alg: 'None' })],
  [
    'alg HS256 with the public key as secret',
    'header.alg',
    hs256(Buffer.from(key.publicJwk.x, 'base64url')),
  ],
  ['alg HS256 with the public JWK as secret', 'header.alg', hs256(JSON.stringify(key.publicJwk))],
  ['alg PS256', 'header.alg', withHeader({ alg: 'PS256' })],
  ['alg ES256 with an Ed25519 key', 'header.alg', withHeader({ alg: 'ES256' })],
  ['alg RS256 with an Ed25519 key', 'header.alg', withHeader({ alg: 'RS256' })],
  [
    'alg Ed25519 with a key for EdDSA only',
    'header.alg',
    withHeader({ alg: 'Ed25519', kid: 'eddsa-only' }),
  ],
  ['alg missing', 'header', withHeader({ alg: undefined })],
  ['alg that is an array', 'header.alg', withHeader({ alg: ['EdDSA'] })],
  ['typ JWT', 'header.typ', withHeader({ typ: 'JWT' })],
  ['typ in capitals', 'header.typ', withHeader({ typ: 'AT+JWT' })],
  ['typ with application/', 'header.typ', withHeader({ typ: 'application/at+jwt' })],
  ['typ missing', 'header', withHeader({ typ: undefined })],
  ['kid missing', 'header', withHeader({ kid: undefined })],
  ['kid empty', 'header.kid', withHeader({ kid: '' })],
  ['kid that is a number', 'header.kid', withHeader({ kid: 1 })],
  ['kid unknown', 'header.kid', withHeader({ kid: 'another' })],
  ['kid __proto__', 'header.kid', withHeader({ kid: '__proto__' })],
  ['jku', 'header', withHeader({ jku: 'https://attacker.test/jwks.json' })],
  ['jwk', 'header', withHeader({ jwk: strangerKey.publicJwk })],
  ['x5c', 'header', withHeader({ x5c: ['MIIB'] })],
  ['x5u', 'header', withHeader({ x5u: 'https://attacker.test/chain.pem' })],
  ['x5t', 'header', withHeader({ x5t: 'AAAA' })],
  ['crit of an unknown extension', 'header', withHeader({ crit: ['exp'], exp: NOW + 600 })],
  ['crit empty', 'header', withHeader({ crit: [] })],
  ['b64 false', 'header', withHeader({ b64: false, crit: ['b64'] })],
  ['cty', 'header', withHeader({ cty: 'JWT' })],
  ['zip', 'header', withHeader({ zip: 'DEF' })],
];

const signature: readonly Row[] = [
  [
    'signature by a key that no issuer has',
    'signature',
    signed(headerText, claimsText, strangerKey),
  ],
  ['signature by a key of another issuer', 'signature', signed(headerText, claimsText, otherKey)],
  [
    'kid of another issuer',
    'header.kid',
    signed(JSON.stringify({ ...soundHeader, kid: 'other' }), claimsText, otherKey),
  ],
  [
    'signature over another payload',
    'signature',
    replacePart(sound, 1, () => base64url(claimsText.replace('alice', 'root'))),
  ],
  [
    'signature over another header',
    'signature',
    replacePart(sound, 0, () => base64url(`${headerText} `)),
  ],
  ['signature cut short', 'signature', replacePart(sound, 2, cutShort)],
  [
    'signature with a flipped bit',
    'signature',
    replacePart(sound, 2, (part) => (part.startsWith('A') ? 'B' : 'A') + part.slice(1)),
  ],
];

const claims: readonly Row[] = [
  ...Object.keys(soundClaims).map(
    (name): Row => [`${name} missing`, name, withClaims({ [name]: undefined })],
  ),
  ...Object.keys(soundClaims).map(
    (name): Row => [`${name} null`, name, withClaims({ [name]: null })],
  ),
  ['iss unknown', 'iss', withClaims({ iss: 'https://attacker.test' })],
  ['iss with a slash more', 'iss', withClaims({ iss: `${ISSUER}/` })],
  ['iss that is an array', 'iss', withClaims({ iss: [ISSUER] })],
  ['iss of another trusted issuer', 'header.kid', withClaims({ iss: OTHER_ISSUER })],
  ['sub empty', 'sub', withClaims({ sub: '' })],
  ['sub that is a number', 'sub', withClaims({ sub: 1000 })],
  ['sub with a line end', 'sub', withClaims({ sub: 'alice\nroot' })],
  ['sub with half a surrogate pair', 'sub', withClaims({ sub: 'alice\ud800' })],
  ['sub of 513 characters', 'sub', withClaims({ sub: 'a'.repeat(513) })],
  ['client_id that is an object', 'client_id', withClaims({ client_id: {} })],
  ['aud that is an array', 'aud', withClaims({ aud: [AUDIENCE] })],
  ['aud of another service', 'aud', withClaims({ aud: 'https://elsewhere.test' })],
  ['aud that only begins as ours', 'aud', withClaims({ aud: `${AUDIENCE}.attacker.test` })],
  ['jti that is a number', 'jti', withClaims({ jti: 1 })],
  ['exp that is a string', 'exp', withClaims({ exp: String(NOW + 600) })],
  ['exp with a fraction', 'exp', withClaims({ exp: NOW + 600.5 })],
  ['exp beyond all numbers', 'exp', withPayload(claimsText.replace(String(NOW + 600), '1e400'))],
  ['exp negative', 'exp', withClaims({ exp: -1 })],
  ['exp an hour and a second after iat', 'exp', withClaims({ exp: NOW + 3601 })],
  ['exp years ahead', 'exp', withClaims({ exp: NOW + 315_360_000 })],
  ['exp equal to iat', 'exp', withClaims({ exp: NOW })],
  ['iat that is a string', 'iat', withClaims({ iat: String(NOW) })],
  ['iat 31 seconds ahead', 'iat', withClaims({ iat: NOW + 31 })],
  ['iat true', 'iat', withClaims({ iat: true })],
  ['nbf 31 seconds ahead', 'nbf', withClaims({ nbf: NOW + 31 })],
  ['nbf that is a string', 'nbf', withClaims({ nbf: String(NOW) })],
  ['act by an issuer that may not delegate', 'delegation', withClaims({ act: { sub: 'agent' } })],
  ['lineage by an issuer that may not delegate', 'delegation', withClaims({ lineage: [] })],
  ['max_depth by an issuer that may not delegate', 'delegation', withClaims({ max_depth: 8 })],
  [
    'a grant that is said to be a part of another by an issuer that may not delegate',
    'authorization_details[0]',
    withGrant({ from: [{ id: 'g0' }] }),
  ],
  ['cnf empty', 'cnf', withClaims({ cnf: {} })],
  ['cnf null', 'cnf', withClaims({ cnf: null })],
  ['cnf that is a string', 'cnf', withClaims({ cnf: 'A'.repeat(43) })],
  ['cnf of a key that cannot be checked', 'cnf', withClaims({ cnf: { jkt: 'A'.repeat(43) } })],
  [
    'cnf with one member more',
    'cnf',
    withClaims({ cnf: { 'x5t#S256': 'A'.repeat(43), jkt: 'A'.repeat(43) } }),
  ],
  ['cnf that is too short', 'cnf', withClaims({ cnf: { 'x5t#S256': 'A'.repeat(42) } })],
  ['cnf that is padded', 'cnf', withClaims({ cnf: { 'x5t#S256': `${'A'.repeat(43)}=` } })],
  ['cnf with left-over bits', 'cnf', withClaims({ cnf: { 'x5t#S256': `${'A'.repeat(42)}B` } })],
];

const grant = 'authorization_details[0]';

const grants: readonly Row[] = [
  [
    'grants that are an object',
    'authorization_details',
    withClaims({ authorization_details: soundGrant }),
  ],
  ['grant that is a string', grant, withClaims({ authorization_details: ['terminal.read'] })],
  ['33 grants', 'authorization_details', withClaims({ authorization_details: many(33) })],
  [
    'two grants of one id',
    'authorization_details',
    withClaims({ authorization_details: [soundGrant, soundGrant] }),
  ],
  [
    'second of two grants unsound',
    'authorization_details[1]',
    withClaims({
      authorization_details: [soundGrant, { ...soundGrant, id: 'g2', actions: ['terminal.kil'] }],
    }),
  ],
  ['type unknown', `${grant}.type`, withGrant({ type: 'urn:grantty:terminal:v2' })],
  ['type missing', `${grant}.type`, withGrant({ type: undefined })],
  ['id missing', `${grant}.id`, withGrant({ id: undefined })],
  ['id empty', `${grant}.id`, withGrant({ id: '' })],
  ['id of 65 characters', `${grant}.id`, withGrant({ id: 'g'.repeat(65) })],
  ['field unknown', grant, withGrant({ locations: ['https://grantty.test'] })],
  [
    'field __proto__',
    grant,
    withPayload(claimsText.replace('"id":"g1"', '"id":"g1","__proto__":{}')),
  ],
  ['actions missing', `${grant}.actions`, withGrant({ actions: undefined })],
  ['actions that are a string', `${grant}.actions`, withGrant({ actions: 'terminal.read' })],
  ['action unknown', `${grant}.actions`, withGrant({ actions: ['terminal.read', 'terminal.kil'] })],
  ['action with a wildcard', `${grant}.actions`, withGrant({ actions: ['terminal.*'] })],
  ['action that is a wildcard', `${grant}.actions`, withGrant({ actions: ['*'] })],
  ['action in capitals', `${grant}.actions`, withGrant({ actions: ['TERMINAL.READ'] })],
  ['action that is an array', `${grant}.actions`, withGrant({ actions: [['terminal.read']] })],
  ['resource missing', `${grant}.resource`, withGrant({ resource: undefined })],
  ['resource that is a string', `${grant}.resource`, withGrant({ resource: '*' })],
  ...['owner', 'agent', 'session', 'terminal'].map(
    (name): Row => [
      `${name} missing`,
      `${grant}.resource.${name}`,
      withResource({ [name]: undefined }),
    ],
  ),
  ['fifth key of the resource', `${grant}.resource`, withResource({ host: '*' })],
  ['owner that is a number', `${grant}.resource.owner`, withResource({ owner: 1000 })],
  ['owner empty', `${grant}.resource.owner`, withResource({ owner: '' })],
  [
    'selector with a wildcard in front',
    `${grant}.resource.agent`,
    withResource({ agent: '*coder' }),
  ],
  ['selector with a wildcard inside', `${grant}.resource.agent`, withResource({ agent: 'co*er' })],
  ['selector with two wildcards', `${grant}.resource.agent`, withResource({ agent: 'coder**' })],
  ['selector that climbs', `${grant}.resource.agent`, withResource({ agent: '../coder' })],
  ['selector with a slash', `${grant}.resource.agent`, withResource({ agent: 'a/b' })],
  ['selector that begins with a dot', `${grant}.resource.agent`, withResource({ agent: '.coder' })],
  ['prefix that begins with a dot', `${grant}.resource.agent`, withResource({ agent: '.*' })],
  ['selector of 65 bytes', `${grant}.resource.agent`, withResource({ agent: 'a'.repeat(65) })],
  [
    'selector that ends in .sock',
    `${grant}.resource.session`,
    withResource({ session: 'main.sock' }),
  ],
  ['selector that ends in .d', `${grant}.resource.session`, withResource({ session: 'conf.d' })],
  ['selector that is not ASCII', `${grant}.resource.agent`, withResource({ agent: 'coder\u00e9' })],
  ['selector with a line end', `${grant}.resource.agent`, withResource({ agent: 'coder\n' })],
  ['constraints null', `${grant}.constraints`, withConstraints(null)],
  ['constraints that are an array', `${grant}.constraints`, withConstraints([])],
  ['constraint unknown', `${grant}.constraints`, withConstraints({ max_terminal: 3 })],
];

const unsound: Readonly<Record<string, readonly (readonly [name: string, value: unknown])[]>> = {
  expires_at: [
    ['a string', String(NOW)],
    ['a fraction', NOW + 0.5],
    ['negative', -1],
    ['null', null],
  ],
  max_terminals: [
    ['a string', '3'],
    ['negative', -1],
    ['a fraction', 1.5],
    ['null', null],
  ],
  commands: [
    ['a string', '/bin/sh'],
    ['strings', ['/bin/sh']],
    ['with an empty argv', [[]]],
    ['with a relative command', [['bash']]],
    ['with a number', [['/bin/sleep', 1]]],
    ['with a NUL', [['/bin/sh', '-c', 'a\0b']]],
    ['with 257 elements', [['/bin/echo', ...Array(256).fill('x')]]],
  ],
  cwd_under: [
    ['a string', '/workspace'],
    ['relative', ['workspace']],
    ['climbing', ['/workspace/../etc']],
    ['empty', ['']],
    ['with a NUL', ['/work\0space']],
  ],
  env_allow: [
    ['a string', 'LANG'],
    ['with a value', ['LANG=C']],
    ['with a wildcard in front', ['*_PROXY']],
    ['with a wildcard inside', ['MY_*_X']],
    ['beginning with a digit', ['1A']],
    ['empty', ['']],
  ],
  signals: [
    ['a string', 'SIGINT'],
    ['without SIG', ['INT']],
    ['a number', [2]],
    ['a wildcard', ['*']],
    ['unknown', ['SIGFOO']],
    ['of the prototype', ['toString']],
  ],
  signal_bytes: [
    ['true', true],
    ['yes', 'yes'],
    ['null', null],
  ],
  write_bytes_per_second: [
    ['zero', 0],
    ['a string', '65536'],
    ['a fraction', 0.5],
    ['null', null],
  ],
};

const constraints: readonly Row[] = Object.entries(unsound).flatMap(([constraint, values]) =>
  values.map(
    ([name, value]): Row => [
      `${constraint} ${name}`,
      `${grant}.constraints.${constraint}`,
      withConstraints({ [constraint]: value }),
    ],
  ),
);

function many(count: number): readonly Members[] {
  return Array.from({ length: count }, (_, index) => ({
    ...soundGrant,
    id: `g${index}`,
    actions: ['terminal.read'],
  }));
}

const expired: readonly RefusedVector[] = [
  ['expired this second', NOW + 600],
  ['expired 10 seconds ago', NOW + 610],
  ['expired a year ago', NOW + 31_536_000],
].map(([name, now]) => ({
  name: String(name),
  token: sound,
  now: Number(now),
  reason: 'TOKEN_EXPIRED',
  where: 'expired',
}));

export const refusedVectors: readonly RefusedVector[] = [
  ...[...form, ...header, ...signature, ...claims, ...grants, ...constraints].map(
    ([name, where, token]): RefusedVector => ({
      name,
      token,
      now: NOW,
      reason: 'TOKEN_INVALID',
      where,
    }),
  ),
  ...expired,
];
