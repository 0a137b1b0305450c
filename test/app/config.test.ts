import { ConfigurationError, parseConfiguration } from '../../src/app/config.js';
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
    ['an unknown key at the top', `${minimal}\nlisten_on: x`, 'listen_on: unknown key'],
    ['an unknown key below', `${minimal}\nlog: {levle: info}`, 'log.levle: unknown key'],
    ['an unknown key in a list', minimal.replace('jwks_file', 'jwks'), 'issuers[0].jwks: unknown'],
    ['a missing key', minimal.replace(/audience.*/, ''), 'audience: '],
    ['no issuer', minimal.replace(/issuers:.*/s, 'issuers: []'), 'issuers: '],
    ['no keys', minimal.replace(', jwks_file: /etc/keys.json', ''), 'either jwks_file or jwks_url'],
    [
      'keys from two places',
      minimal.replace('jwks_file:', 'jwks_url: https://id.example/k, jwks_file:'),
      'either jwks_file or jwks_url',
    ],
    ...['http://id.example/keys', 'ftp://id.example/k', 'https://me:pw@id.example/k', '/keys'].map(
      (url) =>
        [
          `keys from ${url}`,
          minimal.replace('jwks_file: /etc/keys.json', `jwks_url: '${url}'`),
          'issuers[0].jwks_url: must be an https URL',
        ] as const,
    ),
    ['an unknown proof', `${minimal}\npop: maybe`, 'pop: '],
    ['too long a line', `${minimal}\ndelegation: {max_depth: 17}`, 'delegation.max_depth: '],
    ['a wrong address', `${minimal}\nlisten: 7443`, 'listen: '],
    ['a wrong port', `${minimal}\nlisten: 'h:70000'`, 'listen: must be HOST:PORT'],
    ['a wrong mode', `${minimal}\nrun_as: {mode: root}`, 'run_as.mode: '],
    ['a fixed user without a uid', `${minimal}\nrun_as: {mode: fixed-user}`, 'run_as.uid: '],
    ['root as the fixed user', `${minimal}\nrun_as: {mode: fixed-user, uid: 0}`, 'run_as.uid: '],
    [
      'the uid that means no change',
      `${minimal}\nrun_as: {mode: fixed-user, uid: 4294967295}`,
      'run_as.uid: ',
    ],
    [
      'a key of another mode',
      `${minimal}\nrun_as: {mode: shared-uid, uid: 5}`,
      'run_as.uid: unknown',
    ],
    [
      'an action that does not exist',
      minimal.replace('jwks_file:', 'ceiling: {owners: [a], actions: [terminal.all]}, jwks_file:'),
      'issuers[0].ceiling.actions[0]: ',
    ],
    ['no mapping', '[]', 'the file: '],
    ['an empty file', '', 'the file: '],
    ['broken YAML', 'a: [', 'config.yaml: '],
    ['a key that stands twice', `${minimal}\naudience: b`, 'unique'],
  ])('is refused for %s, with the place', (_, text, message) => {
    expect(() => parse(text)).toThrow(ConfigurationError);
    expect(() => parse(text)).toThrow(message);
    expect(() => parse(text)).toThrow('/etc/grantty/config.yaml');
  });

  it('is refused with every problem at once', () => {
    expect(() => parse('listen: x\nnonsense: 1')).toThrow(
      /listen: .*audience: .*tls: .*issuers: .*nonsense: unknown key/s,
    );
  });
});

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
