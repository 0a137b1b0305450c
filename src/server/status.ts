/** The one mapping from what was thrown to what a client is told. */
import { create, type DescMessage, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type Any, anyPack, durationFromMs } from '@bufbuild/protobuf/wkt';
import { Metadata, status as StatusCode, type StatusObject } from '@grpc/grpc-js';
import type { Logger } from 'pino';
import { type ErrorReason, GranttyError } from '../core/errors.js';
import { hostFailure } from '../core/hostFailure.js';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  QuotaFailureSchema,
  RetryInfoSchema,
} from '../gen/public/google/rpc/error_details_pb.js';
import { StatusSchema } from '../gen/public/google/rpc/status_pb.js';
import { TerminalSessionError, type TerminalSessionErrorCode } from '../session/sessionError.js';

export const ERROR_DOMAIN = 'grantty';

/** Where gRPC carries a google.rpc.Status. */
export const STATUS_DETAILS_KEY = 'grpc-status-details-bin';

/** Characters of a message that go on the wire: clients bound the size of trailers. */
const MAX_MESSAGE_LENGTH = 1024;

/** Milliseconds after which a call that failed for a passing reason may be tried again. */
const RETRY_AFTER_MS = 1_000;

const statusCodes: Readonly<Record<ErrorReason, StatusCode>> = {
  TOKEN_MISSING: StatusCode.UNAUTHENTICATED,
  TOKEN_INVALID: StatusCode.UNAUTHENTICATED,
  TOKEN_EXPIRED: StatusCode.UNAUTHENTICATED,
  POP_MISMATCH: StatusCode.UNAUTHENTICATED,
  GRANT_MISSING: StatusCode.PERMISSION_DENIED,
  GRANT_REVOKED: StatusCode.PERMISSION_DENIED,
  POLICY_DENIED: StatusCode.PERMISSION_DENIED,
  TERMINAL_NOT_FOUND: StatusCode.NOT_FOUND,
  FIELD_INVALID: StatusCode.INVALID_ARGUMENT,
  COMMAND_NOT_FOUND: StatusCode.INVALID_ARGUMENT,
  CWD_INVALID: StatusCode.INVALID_ARGUMENT,
  TERMINAL_EXISTS: StatusCode.ALREADY_EXISTS,
  REQUEST_ID_REUSED: StatusCode.ALREADY_EXISTS,
  TERMINAL_EXITED: StatusCode.FAILED_PRECONDITION,
  SEND_ACTIVE: StatusCode.ABORTED,
  LOG_REWOUND: StatusCode.ABORTED,
  QUOTA_TERMINALS: StatusCode.RESOURCE_EXHAUSTED,
  QUOTA_STREAMS: StatusCode.RESOURCE_EXHAUSTED,
  QUOTA_LOG_BYTES: StatusCode.RESOURCE_EXHAUSTED,
  RATE_LIMITED: StatusCode.RESOURCE_EXHAUSTED,
  INPUT_QUEUE_FULL: StatusCode.RESOURCE_EXHAUSTED,
  SEQ_TRIMMED: StatusCode.OUT_OF_RANGE,
  KEYS_UNAVAILABLE: StatusCode.UNAVAILABLE,
  AUDIT_UNAVAILABLE: StatusCode.UNAVAILABLE,
  SUPERVISOR_UNAVAILABLE: StatusCode.UNAVAILABLE,
  SERVER_DRAINING: StatusCode.UNAVAILABLE,
};

/** What a method answers that belongs to the contract and is not built. Carries no reason. */
export class Unimplemented extends Error {
  override readonly name = 'Unimplemented';
}

/** The call was over before it was done: its client is gone or its deadline has passed. */
export class Cancelled extends Error {
  override readonly name = 'Cancelled';
}

/** What the session service's own codes are to clients; a code without a reason is a defect. */
const sessionReasons: Readonly<Record<TerminalSessionErrorCode, ErrorReason | undefined>> = {
  SEND_ACTIVE: 'SEND_ACTIVE',
  DUPLICATE_NAME: 'TERMINAL_EXISTS',
  NO_BACKEND: 'FIELD_INVALID',
  OWNER_NOT_LIVE: 'SERVER_DRAINING',
  SERVICE_DISPOSING: 'SERVER_DRAINING',
  DUPLICATE_BACKEND: undefined,
  // Alike: who may not have a session learns nothing of it.
  NO_SESSION: 'TERMINAL_NOT_FOUND',
  FOREIGN_SESSION: 'TERMINAL_NOT_FOUND',
};

/** The error with a reason that this one stands for; any other as it is. */
export function reasoned(error: unknown): unknown {
  if (!(error instanceof TerminalSessionError)) return lacking(error);
  const reason = sessionReasons[error.code];
  if (reason === undefined) return error;
  const message = reason === 'TERMINAL_NOT_FOUND' ? 'there is no such session' : error.message;
  return new GranttyError(reason, message);
}

/** What this process needs of the host and does not get passes, other than a defect. */
function lacking(error: unknown): unknown {
  const lack = error instanceof GranttyError ? undefined : hostFailure(error);
  if (lack === undefined) return error;
  return new GranttyError('SUPERVISOR_UNAVAILABLE', `${lack}; the log of the server has more`, {
    cause: error,
  });
}

export function statusCodeOf(thrown: unknown): StatusCode {
  const error = reasoned(thrown);
  if (error instanceof GranttyError) return statusCodes[error.reason];
  if (error instanceof Cancelled) return StatusCode.CANCELLED;
  return error instanceof Unimplemented ? StatusCode.UNIMPLEMENTED : StatusCode.INTERNAL;
}

/** What goes with a status that carries no reason. */
const plainTexts: Partial<Record<StatusCode, string>> = {
  [StatusCode.UNIMPLEMENTED]: 'this server does not have this method yet',
  [StatusCode.CANCELLED]: 'the call is over',
  [StatusCode.INTERNAL]: 'internal error; the log of the server has the cause',
};

/** Status of a call that failed. `error` is anything; only a GranttyError's own words leave here. */
export function statusOf(thrown: unknown, logger: Logger, context: object): StatusObject {
  const error = reasoned(thrown);
  if (error instanceof GranttyError) {
    if (error.cause !== undefined) {
      logger.warn({ ...context, reason: error.reason, err: error.cause }, 'call refused');
    }
    return granttyStatus(error);
  }
  const code = statusCodeOf(error);
  if (code === StatusCode.INTERNAL) logger.error({ ...context, err: error }, 'a defect');
  return { code, details: plainTexts[code] ?? '', metadata: new Metadata() };
}

function granttyStatus(error: GranttyError): StatusObject {
  const code = statusCodes[error.reason];
  const message = wellFormed(error.message.slice(0, MAX_MESSAGE_LENGTH));
  const metadata = new Metadata();
  const details = toBinary(
    StatusSchema,
    create(StatusSchema, { code, message, details: detailsOf(error, code) }),
  );
  metadata.set(STATUS_DETAILS_KEY, Buffer.from(details));
  return { code, details: message, metadata };
}

/** With U+FFFD for half surrogate pairs, on which the encoding of a status message would throw. */
function wellFormed(text: string): string {
  return Buffer.from(text).toString();
}

function detailsOf(error: GranttyError, code: StatusCode): Any[] {
  const details = [
    pack(ErrorInfoSchema, {
      reason: error.reason,
      domain: ERROR_DOMAIN,
      metadata: { ...error.metadata },
    }),
  ];
  if (error.violations.length > 0) {
    details.push(
      pack(BadRequestSchema, {
        fieldViolations: error.violations.map((violation) => ({ ...violation })),
      }),
    );
  }
  if (code === StatusCode.FAILED_PRECONDITION) {
    details.push(
      pack(PreconditionFailureSchema, {
        violations: [{ type: error.reason, subject: ERROR_DOMAIN, description: error.message }],
      }),
    );
  }
  if (code === StatusCode.RESOURCE_EXHAUSTED) {
    details.push(
      pack(QuotaFailureSchema, {
        violations: [{ subject: error.reason, description: error.message }],
      }),
    );
  }
  const retryAfterMs = error.retryAfterMs ?? (passes(error.reason) ? RETRY_AFTER_MS : undefined);
  if (retryAfterMs !== undefined) {
    details.push(pack(RetryInfoSchema, { retryDelay: durationFromMs(retryAfterMs) }));
  }
  return details;
}

/** Whether the same request may succeed a moment later without the caller changing anything. */
function passes(reason: ErrorReason): boolean {
  return (
    statusCodes[reason] === StatusCode.UNAVAILABLE ||
    reason === 'INPUT_QUEUE_FULL' ||
    reason === 'RATE_LIMITED'
  );
}

function pack<M extends DescMessage>(schema: M, init: MessageInitShape<M>): Any {
  return anyPack(schema, create(schema, init));
}
