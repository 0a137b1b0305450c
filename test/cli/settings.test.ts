import { parseContextFile, selectContext } from '../../src/cli/contextFile.js';
import { UsageError } from '../../src/cli/exitCode.js';
import {
  environmentLayer,
  resolveSettings,
  settingNames,
  variableName,
} from '../../src/cli/settings.js';

const base = { address: 'h:1', token: 't' };

describe('settings', () => {
  it('take flags before the environment before the context, each on its own', () => {
    const settings = resolveSettings([
      { address: 'flag:1' },
      environmentLayer({ GRANTTY_ADDRESS: 'env:1', GRANTTY_CA: '/env/ca', GRANTTY_TOKEN: 'env' }),
      { address: 'context:1', ca: '/context/ca', owner: '1000', token: 'context' },
    ]);
    expect(settings).toEqual({
      address: 'flag:1',
      ca: '/env/ca',
      owner: '1000',
      token: { kind: 'literal', token: 'env' },
    });
  });

  it('take the token from the first place that has any, whatever its form', () => {
    const token = (...layers: Parameters<typeof resolveSettings>[0]) =>
      resolveSettings([{ address: 'h:1' }, ...layers]).token;
    expect(token({ tokenCommand: 'c' }, { token: 't' })).toEqual({ kind: 'command', command: 'c' });
    expect(token({ tokenFile: 'f', tokenCommand: 'c' })).toEqual({ kind: 'file', path: 'f' });
    expect(token({ token: 't', tokenFile: 'f' })).toEqual({ kind: 'literal', token: 't' });
  });

  it('have a variable each', () => {
    expect(settingNames.map(variableName)).toEqual([
      'GRANTTY_ADDRESS',
      'GRANTTY_CA',
      'GRANTTY_TOKEN',
      'GRANTTY_TOKEN_FILE',
      'GRANTTY_TOKEN_COMMAND',
      'GRANTTY_CERT',
      'GRANTTY_KEY',
      'GRANTTY_SERVER_NAME',
      'GRANTTY_OWNER',
    ]);
  });

  it('take an empty variable for none', () => {
    const layers = [environmentLayer({ GRANTTY_OWNER: '' }), { ...base, owner: '7' }];
    expect(resolveSettings(layers).owner).toBe('7');
  });

  it.each(['h:1', '[::1]:7443', '127.0.0.1:65535'])('accept the address %s', (address) => {
    expect(resolveSettings([{ ...base, address }]).address).toBe(address);
  });

  it.each(['h', ':1', '::1:1', 'http://h:1', 'h:x', '[::1]'])(
    'refuse the address %s',
    (address) => {
      expect(() => resolveSettings([{ ...base, address }])).toThrow(UsageError);
    },
  );

  it('say what to do where the address, the token or half of a certificate is missing', () => {
    expect(() => resolveSettings([{ token: 't' }])).toThrow('GRANTTY_ADDRESS');
    expect(() => resolveSettings([{ address: 'h:1' }])).toThrow('GRANTTY_TOKEN_FILE');
    expect(() => resolveSettings([{ ...base, cert: 'c' }])).toThrow('--key');
  });
});

describe('a context', () => {
  const file = {
    current: 'dev',
    contexts: {
      dev: { address: 'd:1', token_file: '/t', ca: 'ca.pem' },
      prod: { server_name: 'p' },
    },
  };
  const select = (document: unknown, name?: string) =>
    selectContext('/c/f', parseContextFile('/c/f', document), name);

  it('is the current one, or the one that is named', () => {
    expect(select(file)).toEqual({ address: 'd:1', tokenFile: '/t', ca: '/c/ca.pem' });
    expect(select(file, 'prod')).toEqual({ serverName: 'p' });
  });

  it('is none where the file names none', () => {
    expect(select({ contexts: {} })).toEqual({});
  });

  it.each([
    ['a name that is not there', file, 'test', 'there are: dev, prod'],
    ['a name of every object', file, 'toString', 'there is no context'],
    ['an unknown key at the top', { context: {} }, undefined, 'unknown key "context"'],
    ['an unknown setting', { contexts: { a: { adress: 'x' } } }, 'a', 'contexts.a.adress'],
    ['a number', { contexts: { a: { owner: 1000 } } }, 'a', 'quotes'],
    ['a list', [], undefined, 'must be a mapping'],
  ])('is refused for %s', (_, document, name, message) => {
    expect(() => select(document, name)).toThrow(message);
  });
});
