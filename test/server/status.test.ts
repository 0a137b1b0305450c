import { fromBinary } from '@bufbuild/protobuf';
import { status as StatusCode } from '@grpc/grpc-js';
import { pino } from 'pino';
import { errorReasons, GranttyError } from '../../src/core/errors.js';
import { StatusSchema } from '../../src/gen/public/google/rpc/status_pb.js';
import { ErrorReason } from '../../src/gen/public/grantty/v1/errors_pb.js';
import { statusOf, Unimplemented } from '../../src/server/status.js';
import { detailsOf } from './harness.js';

const silent = pino({ level: 'silent' });

describe('the status of an error', () => {
  it('knows exactly the reasons of the contract', () => {
    const wire = Object.values(ErrorReason).filter((name) => typeof name === 'string');
    expect(wire.filter((name) => name !== 'UNSPECIFIED').sort()).toEqual([...errorReasons].sort());
  });

  it.each(errorReasons)(
    'gives %s a code other than OK, UNKNOWN and INTERNAL, and ErrorInfo',
    (reason) => {
      const answer = statusOf(new GranttyError(reason, 'why'), silent, {});
      expect([StatusCode.OK, StatusCode.UNKNOWN, StatusCode.INTERNAL]).not.toContain(answer.code);
      const { info, status } = detailsOf(answer);
      expect(info).toMatchObject({ domain: 'grantty', reason });
      expect(status).toMatchObject({ code: answer.code, message: 'why' });
    },
  );

  it('says when to come back where that helps, and only there', () => {
    const retry = (reason: (typeof errorReasons)[number], retryAfterMs?: number) =>
      detailsOf(
        statusOf(
          new GranttyError(reason, '', retryAfterMs === undefined ? {} : { retryAfterMs }),
          silent,
          {},
        ),
      ).retry?.retryDelay;
    expect(retry('SERVER_DRAINING')).toBeDefined();
    expect(retry('RATE_LIMITED', 250)).toMatchObject({ seconds: 0n, nanos: 250_000_000 });
    expect(retry('GRANT_MISSING')).toBeUndefined();
    expect(retry('QUOTA_TERMINALS')).toBeUndefined();
  });

  it('bounds the message and survives half a surrogate pair', () => {
    const long = `${'x'.repeat(1023)}\u{1F600}tail`;
    const { details } = statusOf(new GranttyError('FIELD_INVALID', long), silent, {});
    expect(details.length).toBeLessThanOrEqual(1024);
    expect(() => encodeURI(details)).not.toThrow();
  });

  it.each([new Error('secret'), 'secret', undefined, { code: 3, details: 'secret' }])(
    'says no more than INTERNAL of %p',
    (error) => {
      const answer = statusOf(error, silent, {});
      expect(answer.code).toBe(StatusCode.INTERNAL);
      expect(JSON.stringify(answer)).not.toContain('secret');
    },
  );

  it.each(['ENOSPC', 'EROFS', 'EMFILE', 'ENFILE'])(
    'says what the host lacks for %s, and nothing of where',
    (code) => {
      const error = Object.assign(new Error('open /a/secret/path'), { code });
      const answer = statusOf(error, silent, {});
      const { info, retry } = detailsOf(answer);
      expect(info?.reason).toBe('SUPERVISOR_UNAVAILABLE');
      expect(retry?.retryDelay).toBeDefined();
      expect(answer.details).toMatch(/^(there is no|the file|the process|the host)/);
      expect(JSON.stringify(answer)).not.toContain('secret');
    },
  );

  it('gives a method that is not built no reason', () => {
    const answer = statusOf(new Unimplemented(), silent, {});
    expect(answer.code).toBe(StatusCode.UNIMPLEMENTED);
    expect(answer.metadata.get('grpc-status-details-bin')).toEqual([]);
  });

  it('carries violations as BadRequest', () => {
    const violations = [{ field: 'size.rows', description: 'must be 1 to 1000' }];
    const { metadata } = statusOf(
      new GranttyError('FIELD_INVALID', 'x', { violations }),
      silent,
      {},
    );
    const bytes = metadata.get('grpc-status-details-bin')[0] as Buffer;
    expect(fromBinary(StatusSchema, bytes).details).toHaveLength(2);
    expect(detailsOf({ metadata }).badRequest?.fieldViolations).toMatchObject(violations);
  });
});
