/** A server stream as one unbroken iteration: opened again after a loss and with a renewed token. */
import { ClosingReason } from '../gen/public/grantty/v1/stream_pb.js';
import { LinkedSignal } from './linkedSignal.js';
import { type Pacing, Reconnection } from './reconnection.js';

export interface ResumeOptions {
  /** Ends the iteration with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Told why the stream broke, before each attempt to resume it; attempts count from 1. */
  readonly onInterruption?: (failure: unknown, attempt: number) => void;
  readonly pacing?: Pacing;
}

/** What a stream needs of its connection. */
export interface Connected {
  readonly token: () => Promise<string>;
  /** Aborted when the connection is closed: streams end as if they had been left. */
  readonly closed: AbortSignal;
}

/** An event as all streams have them: some arms are about the stream itself. */
type StreamEvent = { readonly case: string | undefined; readonly value?: unknown };
type Known<E extends StreamEvent> = Exclude<E, { case: undefined }>;

export interface ResumableStream<E extends StreamEvent> {
  /** Another call, from where the last event given has left off. */
  open(options: {
    readonly token: string;
    readonly signal: AbortSignal;
  }): AsyncIterable<{ readonly event: E }>;
  /** Takes note of an event; false when it is not for the caller. Not asked for `expiring` and `closing`. */
  take(event: Known<E>): boolean;
  /** Whether the failure was that the place to go on from is gone, and `open` has another one now. */
  moved?(failure: unknown): boolean;
}

/** Pulled: a caller that waits between events holds back the server's stream and no more. */
export async function* resuming<E extends StreamEvent>(
  connected: Connected,
  stream: ResumableStream<E>,
  options: ResumeOptions,
): AsyncGenerator<Known<E>, void, undefined> {
  connected.closed.throwIfAborted();
  using linked = new LinkedSignal([options.signal, connected.closed]);
  const { signal } = linked;
  try {
    yield* resumed(connected, stream, { ...options, signal });
  } catch (failure) {
    if (signal.aborted && signal.reason === connected.closed.reason) return;
    signal.throwIfAborted();
    throw failure;
  }
}

async function* resumed<E extends StreamEvent>(
  { token: tokenSource }: Connected,
  stream: ResumableStream<E>,
  options: ResumeOptions & { readonly signal: AbortSignal },
): AsyncGenerator<Known<E>, void, undefined> {
  const { signal } = options;
  const reconnection = new Reconnection(tokenSource, signal, options.pacing);
  for (;;) {
    const token = await tokenSource();
    try {
      let renewed = false;
      for await (const { event } of stream.open({ token, signal })) {
        reconnection.opened();
        if (!isKnown(event)) continue;
        if (event.case === 'expiring') {
          // A server stream cannot be given a new token: another call goes on where this one is left.
          renewed = (await tokenSource()) !== token;
          if (renewed) break;
          continue;
        }
        const isGiven = event.case === 'closing' ? !mayGoOn(reasonOf(event)) : stream.take(event);
        if (isGiven) yield event;
      }
      if (!renewed) return;
    } catch (failure) {
      if (stream.moved?.(failure)) continue;
      const attempt = await reconnection.wait(failure, token);
      options.onInterruption?.(failure, attempt);
    }
  }
}

function isKnown<E extends StreamEvent>(event: E): event is Known<E> {
  return event.case !== undefined;
}

function reasonOf({ value }: StreamEvent): ClosingReason {
  return typeof value === 'object' && value !== null && 'reason' in value
    ? (value.reason as ClosingReason)
    : ClosingReason.UNSPECIFIED;
}

/** The status that follows such a `closing` decides; it is passed on only where the stream ends. */
export function mayGoOn(reason: ClosingReason): boolean {
  return (
    reason === ClosingReason.TOKEN_EXPIRED ||
    reason === ClosingReason.SERVER_DRAINING ||
    reason === ClosingReason.SUPERVISOR_UNAVAILABLE ||
    reason === ClosingReason.KEYS_UNAVAILABLE ||
    reason === ClosingReason.AUDIT_UNAVAILABLE
  );
}
