/** Watch as one unbroken stream: resumed by seq after a lost connection and with a renewed token. */
import { ClosingReason } from '../gen/public/grantty/v1/stream_pb.js';
import type {
  TerminalService,
  WatchRequestSchema,
  WatchResponse,
} from '../gen/public/grantty/v1/terminal_service_pb.js';
import type { Init, ServiceClient } from './grpc.js';
import { Position } from './position.js';
import { type Pacing, Reconnection } from './reconnection.js';

export type WatchRequestInit = Init<typeof WatchRequestSchema>;
export type WatchEvent = Exclude<WatchResponse['event'], { case: undefined }>;

export interface WatchOptions {
  /** Ends the iteration with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Told why the stream broke, before each attempt to resume it; attempts count from 1. */
  readonly onInterruption?: (failure: unknown, attempt: number) => void;
  readonly pacing?: Pacing;
}

/** What watch and attach need of a connection. */
export interface StreamSource {
  readonly terminals: Pick<ServiceClient<typeof TerminalService>, 'watch' | 'attach'>;
  readonly token: () => Promise<string>;
}

/**
 * The events in the order of the contract, each seq once, however often the connection is lost: one
 * `started`, outputs and exits, and one `closing` where the server ended the stream for good.
 * Events are pulled: a caller that waits between them holds back the server's stream and no more.
 * @throws CallError, StatusError
 */
export async function* watch(
  source: StreamSource,
  request: WatchRequestInit,
  options: WatchOptions = {},
): AsyncGenerator<WatchEvent, void, undefined> {
  const { signal } = options;
  const position = new Position(request.start);
  const reconnection = new Reconnection(source.token, signal, options.pacing);
  let first = true;
  for (;;) {
    const token = await source.token();
    const start = position.next;
    const call = source.terminals.watch(start ? { ...request, start } : request, {
      token,
      ...(signal ? { signal } : {}),
    });
    try {
      let renewed = false;
      for await (const { event } of call) {
        if (event.case === undefined) continue;
        if (event.case === 'started') {
          reconnection.opened();
          position.started(event.value);
          if (!first) continue;
          first = false;
        } else if (event.case === 'expiring') {
          // A watch cannot be given a new token: another call goes on where this one is left.
          renewed = (await source.token()) !== token;
          if (renewed) break;
          continue;
        } else if (event.case === 'closing') {
          if (mayGoOn(event.value.reason)) continue;
        } else if (!position.advance(event)) {
          continue;
        }
        yield event;
      }
      if (!renewed) return;
    } catch (failure) {
      const attempt = await reconnection.wait(failure, token);
      options.onInterruption?.(failure, attempt);
    }
  }
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
