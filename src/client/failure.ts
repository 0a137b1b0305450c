/** What a failed call throws: the server's GranttyError rebuilt, or the bare status. */
import { fromBinary } from '@bufbuild/protobuf';
import { anyUnpack, durationMs } from '@bufbuild/protobuf/wkt';
import { type Metadata, status } from '@grpc/grpc-js';
import { type ErrorDetails, type ErrorReason, errorReasons, GranttyError } from '../core/errors.js';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from '../gen/public/google/rpc/error_details_pb.js';
import { StatusSchema } from '../gen/public/google/rpc/status_pb.js';

/** Name of a gRPC status code, such as `UNAVAILABLE`. */
export type StatusName = keyof typeof status;

/** A failure that the server gave a reason for. */
export class CallError extends GranttyError {
  constructor(
    readonly code: StatusName,
    reason: ErrorReason,
    message: string,
    details: ErrorDetails,
  ) {
    super(reason, message, details);
  }
}

/**
 * A failure without a reason that this client knows: the connection, a deadline, a cancellation, a
 * method that the server does not have, a defect of the server.
 */
export class StatusError extends Error {
  override readonly name = 'StatusError';

  constructor(
    readonly code: StatusName,
    message: string,
    /** The connection was there and broke: whether the call had an effect is not known. */
    readonly connectionLost = false,
  ) {
    super(message);
  }
}

export type CallFailure = CallError | StatusError;

export function isCallFailure(error: unknown): error is CallFailure {
  return error instanceof CallError || error instanceof StatusError;
}

/** As grpc-js gives it: a ServiceError and a StatusObject both fit. */
interface GrpcStatus {
  readonly code: status;
  readonly details: string;
  readonly metadata?: Metadata;
}

const DOMAIN = 'grantty';

/** grpc-js ends the text of a failed connection with this, and with nothing behind it as a rule. */
const EMPTY_NOTE = /\.? Resolution note: $/;

/**
 * What grpc-js says, under several codes, of a stream that was reset and got no status: so ends a
 * connection that the HTTP/2 library of either side gives up. For a caller it is a lost connection.
 * "Connection dropped" is that itself; grpc-js drops one also where a call begins in the moment in
 * which the server says that it will close it.
 */
const RESET =
  /^(?:Connection dropped$|Received RST_STREAM with code|Call cancelled$|Bandwidth exhausted or memory limit exceeded$)/;

export function failureOf(failed: GrpcStatus): CallFailure {
  if (RESET.test(failed.details)) return new StatusError('UNAVAILABLE', failed.details, true);
  const code = (status[failed.code] ?? 'UNKNOWN') as StatusName;
  const { reason, details } = statusDetails(failed.metadata);
  return reason === undefined
    ? new StatusError(code, failed.details.replace(EMPTY_NOTE, ''))
    : new CallError(code, reason, failed.details, details);
}

function statusDetails(metadata: Metadata | undefined): {
  reason?: ErrorReason;
  details: ErrorDetails;
} {
  const packed = metadata?.get('grpc-status-details-bin')[0];
  if (!(packed instanceof Uint8Array)) return { details: {} };
  let reason: ErrorReason | undefined;
  let details: ErrorDetails = {};
  for (const any of fromBinary(StatusSchema, packed).details) {
    const info = anyUnpack(any, ErrorInfoSchema);
    if (info?.domain === DOMAIN) {
      reason = errorReasons.find((known) => known === info.reason);
      details = { ...details, metadata: info.metadata };
    }
    const badRequest = anyUnpack(any, BadRequestSchema);
    if (badRequest) {
      const violations = badRequest.fieldViolations.map(({ field, description }) => ({
        field,
        description,
      }));
      details = { ...details, violations };
    }
    const retry = anyUnpack(any, RetryInfoSchema);
    if (retry?.retryDelay) details = { ...details, retryAfterMs: durationMs(retry.retryDelay) };
  }
  return reason === undefined ? { details } : { reason, details };
}
