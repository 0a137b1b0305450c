import { describe, expect, it } from '@jest/globals';
import { MAX_ENV_BYTES, MAX_ENV_COUNT } from '../../src/core/limits.js';
import { childEnvironment } from '../../src/pty/environment.js';

const account = { uid: 1000, gid: 1000, name: 'ann', home: '/home/ann', shell: '/bin/zsh' };

function environment(request: Record<string, string> = {}) {
  return childEnvironment({
    account,
    agent: 'coder',
    session: 'default',
    terminal: 'terminal-coder-default',
    instance: '0123',
    request,
  });
}

describe('the environment made for a child', () => {
  it('is this and no more', () => {
    process.env.GRANTTY_TEST_SECRET = 'x';
    expect(environment()).toEqual({
      PATH: '/usr/local/bin:/usr/bin:/bin',
      HOME: '/home/ann',
      USER: 'ann',
      LOGNAME: 'ann',
      SHELL: '/bin/zsh',
      LANG: 'C.UTF-8',
      TERM: 'xterm-256color',
      CTX_AGENT: 'coder',
      CTX_SESSION: 'default',
      CTX_TERMINAL: 'terminal-coder-default',
      CTX_INSTANCE: '0123',
    });
    delete process.env.GRANTTY_TEST_SECRET;
  });

  it('takes what the request adds and replaces', () => {
    expect(environment({ TERM: 'dumb', LC_ALL: 'C', MY: 'a=b', EMPTY: '' })).toMatchObject({
      TERM: 'dumb',
      LC_ALL: 'C',
      MY: 'a=b',
      EMPTY: '',
    });
  });

  it.each(['USER', 'LOGNAME', 'SHELL', 'CTX_AGENT', 'CTX_SESSION', 'CTX_TERMINAL', 'CTX_INSTANCE'])(
    'refuses a request that sets %s',
    (name) => {
      expect(() => environment({ [name]: 'x' })).toThrow(
        expect.objectContaining({ reason: 'FIELD_INVALID' }),
      );
    },
  );

  it.each(['', 'A=B', 'A\0', 'A B', '1A', 'Ä'])('refuses the name %j', (name) => {
    expect(() => environment({ [name]: 'x' })).toThrow(
      expect.objectContaining({ reason: 'FIELD_INVALID' }),
    );
  });

  it('refuses a value with a NUL byte, and never shows the value', () => {
    expect(() => environment({ A: 'sec\0ret' })).toThrow(/^env\.A: holds a NUL byte$/);
  });

  it('refuses too many variables and too many bytes', () => {
    const many = Array.from({ length: MAX_ENV_COUNT + 1 }, (_, index) => [`V${index}`, '']);
    expect(() => environment(Object.fromEntries(many))).toThrow(/variables/);
    expect(() => environment(Object.fromEntries(many.slice(1)))).not.toThrow();
    expect(() => environment({ A: 'x'.repeat(MAX_ENV_BYTES - 3) })).not.toThrow();
    expect(() => environment({ A: 'ä'.repeat(MAX_ENV_BYTES / 2 - 1) })).toThrow(/bytes/);
  });
});
