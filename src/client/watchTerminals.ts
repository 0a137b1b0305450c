/** WatchTerminals as one unbroken stream: resumed by cursor after a lost connection. */
import type {
  WatchTerminalsRequestSchema,
  WatchTerminalsResponse,
} from '../gen/public/grantty/v1/terminal_service_pb.js';
import type { Init } from './grpc.js';
import { type ResumeOptions, resuming } from './resuming.js';
import type { StreamSource } from './watch.js';

export type WatchTerminalsRequestInit = Init<typeof WatchTerminalsRequestSchema>;
export type TerminalsEvent = Exclude<WatchTerminalsResponse['event'], { case: undefined }>;

/**
 * Snapshot, then changes, in the order of the contract. After a lost connection it goes on after
 * the last change; where the server cannot, another snapshot comes, ended by a `snapshotEnd` that is
 * not `resumed`: what it does not name is gone. One that is `resumed` is given only at the start.
 * @throws CallError, StatusError
 */
export function watchTerminals(
  source: StreamSource,
  request: WatchTerminalsRequestInit = {},
  options: ResumeOptions = {},
): AsyncGenerator<TerminalsEvent, void, undefined> {
  let cursor = request.cursor ?? '';
  let isFirst = true;
  return resuming<WatchTerminalsResponse['event']>(
    source,
    {
      open: (call) => source.terminals.watchTerminals({ ...request, cursor }, call),
      take: (event) => {
        switch (event.case) {
          case 'snapshotEnd': {
            ({ cursor } = event.value);
            const isGiven = isFirst || !event.value.resumed;
            isFirst = false;
            return isGiven;
          }
          case 'changed':
          case 'removed':
            ({ cursor } = event.value);
            return true;
          default:
            return true;
        }
      },
    },
    options,
  );
}
