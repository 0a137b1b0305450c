import { nearest } from '../../src/core/nearest.js';

describe('the name that was probably meant', () => {
  const known = ['state_dir', 'listen', 'audience', 'tls', 'jwks_file', 'jwks_url'];

  it.each([
    ['stateDir', 'state_dir'],
    ['state-dir', 'state_dir'],
    ['lisetn', 'listen'],
    ['listne', 'listen'],
    ['audence', 'audience'],
    ['audienxe', 'audience'],
    ['jwks_uri', 'jwks_url'],
    ['tsl', 'tls'],
  ])('by %s is %s', (written, meant) => {
    expect(nearest(written, known)).toBe(meant);
  });

  it.each(['nonsense', 'x', '', 'certificate'])('by %j is none', (written) => {
    expect(nearest(written, known)).toBeUndefined();
  });

  it('is the nearest of several', () => {
    expect(nearest('jwks_fil', ['jwks_url', 'jwks_file', 'jwks_fils_'])).toBe('jwks_file');
  });
});
