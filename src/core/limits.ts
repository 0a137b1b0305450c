/** Hard limits of the contract. What exceeds one is refused; nothing is truncated. */

export interface Range {
  readonly min: number;
  readonly max: number;
}

/** Terminal size, in character cells, each way. */
export const SIZE_RANGE: Range = { min: 1, max: 1000 };
export const DEFAULT_SIZE = { cols: 80, rows: 24 } as const;

/** Bytes of one input frame or of one Write. */
export const MAX_INPUT_FRAME_BYTES = 64 * 1024;
/** Bytes of one gRPC message that a client sends. */
export const MAX_MESSAGE_BYTES = 256 * 1024;
/** Bytes of request metadata, the token included. */
export const MAX_METADATA_BYTES = 16 * 1024;

export const MAX_ARGV_COUNT = 256;
export const MAX_ARGV_BYTES = 128 * 1024;
export const MAX_ENV_COUNT = 256;
export const MAX_ENV_BYTES = 64 * 1024;

export const MAX_LABELS = 32;
/** Bytes of a label's key and value together. */
export const MAX_LABEL_BYTES = 256;

/** Bytes of output that one event of the log holds at most. */
export const MAX_EVENT_DATA_BYTES = 64 * 1024;

/** Input bytes that wait for one terminal; above it a write is refused with INPUT_QUEUE_FULL. */
export const MAX_INPUT_QUEUE_BYTES = 1024 * 1024;

/** Output bytes read from one PTY and not yet in its log; at this mark the PTY is paused. */
export const MAX_UNLOGGED_BYTES = 4 * 1024 * 1024;

export const MAX_LIVE_TERMINALS_PER_OWNER = 64;
export const MAX_LIVE_TERMINALS_PER_HOST = 4096;
/** Bytes of log over all terminals of one owner; above it output is held back. */
export const MAX_LOG_BYTES_PER_OWNER = 8 * 1024 ** 3;
export const MAX_ATTACHMENTS_PER_TERMINAL = 64;
export const MAX_ATTACHMENTS_PER_PRINCIPAL = 16;
export const MAX_STREAMS_PER_PRINCIPAL = 256;

/** Milliseconds between SIGTERM and the report of what still lives. */
export const DEFAULT_STOP_GRACE_MS = 5_000;
export const MAX_STOP_GRACE_MS = 60_000;

/** Milliseconds of silence after which a stream says that it is alive. */
export const HEARTBEAT_MS = 15_000;
/** Milliseconds before a token's end at which a stream warns. */
export const EXPIRY_WARNING_MS = 30_000;
