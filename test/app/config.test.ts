import { parseConfiguration } from '../../src/app/config.js';
import { ConfigurationError } from '../../src/app/configurationError.js';
import { chooseIsolation } from '../../src/app/isolationChoice.js';
import { formatAddress, isLoopback, parseListen } from '../../src/app/listen.js';
import { chooseProof } from '../../src/app/proofChoice.js';

const minimal = `
audience: https://terminals.example
tls: {cert: server.pem, key: keys/server.key}
issuers:
  - {issuer: https://id.example, jwks_file: /etc/keys.json}
`;

const parse = (text: string) => parseConfiguration('/etc/grantty/config.yaml', text);

describe('the configuration', () => {
  it('takes paths from the folder of its file, and defaults for what is left out', () => {
    expect(parse(minimal)).toMatchObject({
      audience: 'https://terminals.example',
      tls: { cert: '/etc/grantty/server.pem', key: '/etc/grantty/keys/server.key' },
      issuers: [{ issuer: 'https://id.example', jwks_file: '/etc/keys.json' }],
      log: { level: 'info', sync: 'interval' },
      limits: { connections: 1024, streams_per_principal: 256 },
    });
  });

  it('takes everything that it knows', () => {
    const config = parse(`
state_dir: state
listen: '[::1]:0'
audience: a
tls: {cert: c, key: k, client_ca: ca}
issuers:
  - issuer: i
    jwks_file: j
    ceiling: {owners: ['1000', 'team-*'], actions: [terminal.read]}
run_as: {mode: by-uid}
log: {level: debug, sync: batch}
limits: {connections: 10, streams_per_principal: 5}
`);
    expect(config).toMatchObject({
      state_dir: '/etc/grantty/state',
      listen: { host: '::1', port: 0 },
      run_as: { mode: 'by-uid', min_uid: 1000 },
      log: { level: 'debug', sync: 'batch' },
    });
  });

  it.each<readonly [string, string, string]>([
    [
      'an unknown key',
      `${minimal}\nnonsense: x`,
      'nonsense is no key; there are state_dir, listen,',
    ],
    ['a slip', `${minimal}\naudeince: x`, 'audeince is no key; did you mean audience?'],
    ['another spelling', `${minimal}\nstateDir: x`, 'stateDir is no key; did you mean state_dir?'],
    ['a slip below', `${minimal}\nlog: {levle: info}`, 'log.levle is no key; did you mean level?'],
    [
      'a key in the wrong place',
      `${minimal}\nclient_ca: x`,
      'client_ca is no key there; did you mean tls.client_ca?',
    ],
    [
      'an unknown key in a list',
      minimal.replace('jwks_file', 'jwks_files'),
      'issuers[0].jwks_files is no key; did you mean jwks_file?',
    ],
    ['a missing key', minimal.replace(/audience.*/, ''), 'audience is required'],
    ['a missing key below', minimal.replace('cert: server.pem, ', ''), 'tls.cert is required'],
    ['a missing mapping', minimal.replace(/tls:.*/, ''), 'tls is required'],
    [
      'a mapping that is empty',
      minimal.replace(/tls:.*/, 'tls:'),
      'tls must be a mapping of keys to values, and is empty',
    ],
    [
      'a number for text',
      minimal.replace(/audience.*/, 'audience: 5'),
      'audience must be text, and is 5',
    ],
    [
      'empty text',
      minimal.replace(/audience.*/, "audience: ''"),
      'audience must be text that is not',
    ],
    [
      'a list for text',
      minimal.replace(/audience.*/, 'audience: [a]'),
      'must be text, and is a list',
    ],
    ['text for a list', minimal.replace(/issuers:.*/s, 'issuers: x'), 'must be a list, and is "x"'],
    [
      'no issuer',
      minimal.replace(/issuers:.*/s, 'issuers: []'),
      'issuers must be a list of at least 1, and is an empty list',
    ],
    ['no keys', minimal.replace(', jwks_file: /etc/keys.json', ''), 'either jwks_file or jwks_url'],
    [
      'keys from two places',
      minimal.replace('jwks_file:', 'jwks_url: https://id.example/k, jwks_file:'),
      'issuers[0] must have either jwks_file or jwks_url',
    ],
    ...['http://id.example/keys', 'ftp://id.example/k', 'https://me:pw@id.example/k', '/keys'].map(
      (url) =>
        [
          `keys from ${url}`,
          minimal.replace('jwks_file: /etc/keys.json', `jwks_url: '${url}'`),
          'issuers[0].jwks_url must be an https URL',
        ] as const,
    ),
    [
      'an issuer that stands twice',
      `${minimal}  - {issuer: https://id.example, jwks_file: k}`,
      'issuers[1].issuer is that of issuers[0] too',
    ],
    [
      'an issuer that is its own',
      `${minimal}\ndelegation: {issuer: https://id.example}`,
      'issuers[0].issuer is delegation.issuer too',
    ],
    [
      'an unknown proof',
      `${minimal}\npop: maybe`,
      'pop must be required, if-present or off, and is "maybe"',
    ],
    ['too long a line', `${minimal}\ndelegation: {max_depth: 17}`, 'must be 16 or less, and is 17'],
    ['too few', `${minimal}\nlimits: {connections: 0}`, 'limits.connections must be 1 or more'],
    ['a fraction', `${minimal}\nlimits: {connections: 1.5}`, 'must be a whole number, and is 1.5'],
    ['a number as text', `${minimal}\nlimits: {connections: '5'}`, 'a whole number, and is "5"'],
    ['a wrong address', `${minimal}\nlisten: 7443`, 'listen must be text, and is 7443'],
    ['a wrong port', `${minimal}\nlisten: 'h:70000'`, 'listen must be HOST:PORT'],
    [
      'a wrong mode',
      `${minimal}\nrun_as: {mode: root}`,
      'run_as.mode must be by-uid, fixed-user or shared-uid, and is "root"',
    ],
    [
      'no mode',
      `${minimal}\nrun_as: {}`,
      'run_as.mode is required: by-uid, fixed-user or shared-uid',
    ],
    [
      'a fixed user without a uid',
      `${minimal}\nrun_as: {mode: fixed-user}`,
      'run_as.uid is required',
    ],
    [
      'root as the fixed user',
      `${minimal}\nrun_as: {mode: fixed-user, uid: 0}`,
      'run_as.uid must be',
    ],
    [
      'the uid that means no change',
      `${minimal}\nrun_as: {mode: fixed-user, uid: 4294967295}`,
      'run_as.uid must be 4294967294 or less',
    ],
    [
      'a key of another mode',
      `${minimal}\nrun_as: {mode: shared-uid, uid: 5}`,
      'run_as.uid is no key; there is mode',
    ],
    [
      'an action that does not exist',
      minimal.replace('jwks_file:', 'ceiling: {owners: [a], actions: [terminal.all]}, jwks_file:'),
      'issuers[0].ceiling.actions[0] must be terminal.create, ',
    ],
    ['no mapping', '[]', 'the file must be a mapping of keys to values, and is an empty list'],
    ['an empty file', '', 'the file must be a mapping of keys to values, and is empty'],
    ['broken YAML', 'a: [', 'this is not YAML: '],
    ['a key that stands twice', `${minimal}\naudience: b`, 'unique'],
  ])('is refused for %s, with the place', (_, text, message) => {
    expect(() => parse(text)).toThrow(ConfigurationError);
    expect(() => parse(text)).toThrow(message);
    expect(() => parse(text)).toThrow('/etc/grantty/config.yaml');
  });

  it('is refused with every problem at once, each in a line of its own that names its key', () => {
    const text = `
listen: x
tls: {cert: c}
issuers: [{issuer: i, jwks: j, ceiling: {owners: ['a b'], actions: []}}]
nonsense: 1
`;
    expect(problemsOf(text)).toEqual([
      ['listen', expect.stringContaining('listen must be HOST:PORT')],
      ['audience', 'audience is required'],
      ['tls.key', 'tls.key is required'],
      ['issuers[0].ceiling.owners[0]', expect.stringContaining('must be a name')],
      ['issuers[0].ceiling.actions', expect.stringContaining('a list of at least 1')],
      ['issuers[0].jwks', expect.stringContaining('is no key')],
      ['issuers[0]', 'issuers[0] must have either jwks_file or jwks_url'],
      ['nonsense', expect.stringContaining('nonsense is no key')],
    ]);
    expect(() => parse(text)).toThrow(/is not valid:\n( {2}.+\n){7} {2}.+$/);
  });

  it('is refused in one line for one problem', () => {
    expect(() => parse(minimal.replace('cert: server.pem, ', ''))).toThrow(
      /^\/etc\/grantty\/config\.yaml: tls\.cert is required$/,
    );
  });

  it('is refused without a word of the credentials in a URL', () => {
    const url = 'https://me:hidden@id.example/k';
    const [[, text = ''] = []] = problemsOf(
      minimal.replace('jwks_file: /etc/keys.json', `jwks_url: '${url}'`),
    );
    expect(text).toContain('jwks_url');
    expect(text).not.toContain('hidden');
  });
});

function problemsOf(text: string): (readonly [string | undefined, string])[] {
  try {
    parse(text);
    return [];
  } catch (error) {
    return (error as ConfigurationError).problems.map((one) => [one.key, one.text] as const);
  }
}

describe('an address to listen on', () => {
  it.each([
    ['127.0.0.1:0', '127.0.0.1', 0],
    ['[::1]:7443', '::1', 7443],
    ['localhost:65535', 'localhost', 65_535],
  ])('%s is read and written alike', (text, host, port) => {
    expect(parseListen(text)).toEqual({ host, port });
    expect(formatAddress({ host, port })).toBe(text);
  });

  it.each(['', ':1', 'h', '::1:1', '[h]:1', 'h:65536', 'h:-1', 'a b:1'])('%j is none', (text) => {
    expect(parseListen(text)).toBeUndefined();
  });

  it.each([
    ['127.0.0.1', true],
    ['127.9.9.9', true],
    ['::1', true],
    ['localhost', true],
    ['0.0.0.0', false],
    ['::', false],
    ['192.168.0.1', false],
    ['localhost.example', false],
  ])('%s is loopback: %s', (host, expected) => {
    expect(isLoopback(host)).toBe(expected);
  });
});

describe('whom terminals run as', () => {
  const facts = { runAs: undefined, isLocal: true, uid: 1000, allowSharedUid: false };

  it('is the owner where the server is root', () => {
    expect(chooseIsolation({ ...facts, uid: 0, isLocal: false })).toEqual({
      mode: 'by-uid',
      minUid: 1000,
    });
  });

  it('is the server itself, for its one owner, where it is not root and serves this host alone', () => {
    expect(chooseIsolation(facts)).toEqual({ mode: 'shared-uid', owners: '1000' });
  });

  it('is refused to be the server itself beyond loopback, unless that is accepted', () => {
    expect(() => chooseIsolation({ ...facts, isLocal: false })).toThrow('--allow-shared-uid');
    expect(chooseIsolation({ ...facts, isLocal: false, allowSharedUid: true })).toEqual({
      mode: 'shared-uid',
      owners: 'any',
    });
  });

  it.each([{ mode: 'by-uid', min_uid: 1000 } as const, { mode: 'fixed-user', uid: 5 } as const])(
    'cannot be %j without root',
    (runAs) => {
      expect(() => chooseIsolation({ ...facts, runAs })).toThrow('root');
    },
  );
});

describe('whom terminals run as, with a supervisor that somebody else starts', () => {
  const facts = { isLocal: false, uid: 990, allowSharedUid: false, isElsewhere: true };

  it('is the owner or a fixed user though this server is not root', () => {
    const runAs = { mode: 'by-uid', min_uid: 1000 } as const;
    expect(chooseIsolation({ ...facts, runAs })).toEqual({ mode: 'by-uid', minUid: 1000 });
  });

  it('is refused to be the server itself beyond loopback all the same', () => {
    expect(() => chooseIsolation({ ...facts, runAs: undefined })).toThrow('--allow-shared-uid');
  });
});

describe('proof of possession', () => {
  const { tls } = parse(minimal);
  const withCa = { ...tls, client_ca: '/ca.pem' };

  it('is required where other hosts can connect, unless the configuration says otherwise', () => {
    expect(chooseProof({ tls: withCa }, false)).toBe('required');
    expect(chooseProof({ tls }, true)).toBe('if-present');
    expect(chooseProof({ tls, pop: 'if-present' }, false)).toBe('if-present');
    expect(chooseProof({ tls, pop: 'off' }, false)).toBe('off');
    expect(chooseProof({ tls: withCa, pop: 'required' }, true)).toBe('required');
  });

  it('cannot be required of clients that are not asked for a certificate', () => {
    for (const isLocal of [true, false]) {
      expect(() => chooseProof({ tls, pop: 'required' }, isLocal)).toThrow('tls.client_ca');
    }
    expect(() => chooseProof({ tls }, false)).toThrow(ConfigurationError);
  });
});

describe('keys from a URL', () => {
  it.each(['https://id.example/k', 'http://127.0.0.1:1/k', 'http://[::1]/k', 'http://localhost/k'])(
    'may come from %s',
    (url) => {
      const text = minimal.replace('jwks_file: /etc/keys.json', `jwks_url: '${url}'`);
      expect(parse(text).issuers[0]?.jwks_url).toBe(url);
    },
  );
});
