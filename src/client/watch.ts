/** Watch as one unbroken stream: resumed by seq after a lost connection and with a renewed token. */
import type {
  TerminalService,
  WatchRequestSchema,
  WatchResponse,
} from '../gen/public/grantty/v1/terminal_service_pb.js';
import type { Init, ServiceClient } from './grpc.js';
import { Position } from './position.js';
import { type Connected, type ResumeOptions, resuming } from './resuming.js';

export type WatchRequestInit = Init<typeof WatchRequestSchema>;
export type WatchEvent = Exclude<WatchResponse['event'], { case: undefined }>;

export interface WatchOptions extends ResumeOptions {
  /**
   * Called when a power cut has taken the end of the log: what was given after `lastSeq` is void, and
   * the events go on after it, some seqs a second time. Without this the watch throws LOG_REWOUND.
   */
  readonly onRewind?: (lastSeq: bigint) => void;
}

/** What the streams of terminals need of a connection. */
export interface StreamSource extends Connected {
  readonly terminals: Pick<
    ServiceClient<typeof TerminalService>,
    'watch' | 'attach' | 'watchTerminals'
  >;
}

/**
 * The events in the order of the contract, each seq once unless `onRewind` is called, however often
 * the connection is lost: one `started`, outputs and exits, and one `closing` where the server ended
 * the stream for good.
 * Closing the client ends the iteration without a word.
 * @throws CallError, StatusError
 */
export function watch(
  source: StreamSource,
  request: WatchRequestInit,
  options: WatchOptions = {},
): AsyncGenerator<WatchEvent, void, undefined> {
  const position = new Position(request.start);
  let isFirst = true;
  return resuming<WatchResponse['event']>(
    source,
    {
      open: (call) => {
        const start = position.next;
        return source.terminals.watch(start ? { ...request, start } : request, call);
      },
      take: (event) => {
        if (event.case !== 'started') return position.advance(event);
        position.started(event.value);
        const isGiven = isFirst;
        isFirst = false;
        return isGiven;
      },
      moved: (failure) => {
        const lastSeq = options.onRewind && position.rewound(failure);
        if (lastSeq === undefined) return false;
        options.onRewind?.(lastSeq);
        return true;
      },
    },
    options,
  );
}
