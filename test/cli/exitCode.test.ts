import { ConfigurationError } from '../../src/app/configurationError.js';
import { exitCodeOf, UsageError } from '../../src/cli/exitCode.js';
import { failureOf } from '../../src/client/failure.js';
import { GranttyError } from '../../src/core/errors.js';
import { failure, status } from '../client/fakeServer.js';

describe('the exit code', () => {
  it.each([
    [status.UNAVAILABLE, undefined, 69],
    [status.UNAVAILABLE, 'SERVER_DRAINING', 69],
    [status.UNAUTHENTICATED, 'TOKEN_EXPIRED', 77],
    [status.PERMISSION_DENIED, 'GRANT_MISSING', 77],
    [status.DEADLINE_EXCEEDED, undefined, 124],
    [status.NOT_FOUND, 'TERMINAL_NOT_FOUND', 1],
    [status.INVALID_ARGUMENT, 'FIELD_INVALID', 1],
    [status.INTERNAL, undefined, 1],
    [status.UNIMPLEMENTED, undefined, 1],
  ])('of a failed call with status %d and reason %s is %d', (code, reason, expected) => {
    expect(exitCodeOf(failureOf(failure({ code, ...(reason && { reason }) })))).toBe(expected);
  });

  it('of a server that gets no supervisor is 69', () => {
    expect(exitCodeOf(new GranttyError('SUPERVISOR_UNAVAILABLE', 'x'))).toBe(69);
    expect(exitCodeOf(new GranttyError('FIELD_INVALID', 'x'))).toBe(1);
  });

  it('of a wrong command line or configuration is 2, and of anything else 1', () => {
    expect(exitCodeOf(new UsageError('x'))).toBe(2);
    expect(exitCodeOf(new ConfigurationError('x'))).toBe(2);
    expect(exitCodeOf(new Error('x'))).toBe(1);
    expect(exitCodeOf('x')).toBe(1);
  });
});
