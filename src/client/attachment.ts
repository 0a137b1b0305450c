/** An open attachment, as its user sees it. */
import type { Signal, TerminalSizeSchema } from '../gen/public/grantty/v1/terminal_pb.js';
import type {
  AttachOpenSchema,
  AttachResponse,
} from '../gen/public/grantty/v1/terminal_service_pb.js';
import type { Init } from './grpc.js';
import type { Pacing } from './reconnection.js';

export type AttachOpenInit = Init<typeof AttachOpenSchema>;
export type SizeInit = Init<typeof TerminalSizeSchema>;

/** The connection was lost and the attachment goes on. */
export interface Reconnected {
  /** Input bytes that were sent before the loss and are not known to have arrived; never resent. */
  readonly inputInDoubt: number;
}

export type AttachEvent =
  | Exclude<AttachResponse['event'], { case: undefined }>
  | { readonly case: 'reconnected'; readonly value: Reconnected };

export interface AttachOptions {
  /** Ends the attachment, and the iteration with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Told why the stream broke, before each attempt to resume it; attempts count from 1. */
  readonly onInterruption?: (failure: unknown, attempt: number) => void;
  /** As of a watch; without it the attachment fails with LOG_REWOUND. */
  readonly onRewind?: (lastSeq: bigint) => void;
  readonly pacing?: Pacing;
}

/**
 * An open attachment. `events` is to be iterated once, and all the time: acknowledgements come on
 * it too, so that input waits for a caller that does not read.
 */
export interface Attachment extends AsyncDisposable {
  /** From `started` to `closing`, each seq once, `denied` and `inputAck` in between. */
  readonly events: AsyncIterable<AttachEvent>;
  /**
   * Sends bytes in order, in frames of at most 64 KiB; up to 64 KiB stay one piece at the terminal.
   * Resolves when more may be sent, or nothing any more; a refusal comes as a `denied` event.
   */
  input(data: Uint8Array): Promise<void>;
  /** Sets the size; after a reconnection it is set again. */
  resize(size: SizeInit): Promise<void>;
  signal(signal: Signal): Promise<void>;
  /** Nothing more is sent once the input before has been; events go on. */
  endInput(): void;
  /** Leaves the terminal, which lives on: `events` ends without a word. Closing the client does the same. */
  close(): void;
}
