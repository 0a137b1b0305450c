/** Send as one unbroken stream: read on after a lost connection and with a renewed token. */
import { randomUUID } from 'node:crypto';
import type {
  SendRequestSchema,
  SendResponse,
  SessionService,
} from '../gen/public/grantty/v1/session_service_pb.js';
import type { Init, ServiceClient } from './grpc.js';
import { type Connected, type ResumeOptions, resuming } from './resuming.js';

export type SendRequestInit = Init<typeof SendRequestSchema>;
export type SendEvent = Exclude<SendResponse['event'], { case: undefined }>;

/** What a send needs of a connection. */
export interface SendSource extends Connected {
  readonly sessions: Pick<ServiceClient<typeof SessionService>, 'send'>;
}

/**
 * The events in the order of the contract: one `started`, deltas, one `result`; or one `closing` where
 * the server ended the stream for good. The text is typed once, however often the connection is lost:
 * the same request goes out again and finds its send, also where another server has taken over, for
 * which another `started` is given. Leaving the iteration leaves the send to itself.
 * @throws CallError, StatusError
 */
export function send(
  source: SendSource,
  request: SendRequestInit,
  options: ResumeOptions = {},
): AsyncGenerator<SendEvent, void, undefined> {
  const repeatable = { ...request, requestId: request.requestId || randomUUID() };
  let sendId: string | undefined;
  let lastIndex = 0n;
  return resuming<SendResponse['event']>(
    source,
    {
      open: (call) => source.sessions.send(repeatable, call),
      take: (event) => {
        switch (event.case) {
          case 'started': {
            if (event.value.sendId === sendId) return false;
            ({ sendId } = event.value);
            lastIndex = 0n;
            return true;
          }
          case 'delta': {
            if (event.value.index <= lastIndex) return false;
            lastIndex = event.value.index;
            return true;
          }
          default:
            return true;
        }
      },
    },
    options,
  );
}
