/** The first message of a connection, which must come in time. */
import { type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf';
import type { FrameSocket } from './frameSocket.js';
import { unavailable, unsound } from './protocol.js';

/**
 * Resolves with what `accept` makes of the first message. `accept` runs before any later message is
 * looked at, so that it can install who receives those; otherwise they are refused.
 */
export function firstMessage<Desc extends DescMessage, T>(
  frames: FrameSocket,
  schema: Desc,
  timeoutMs: number,
  accept: (message: MessageShape<Desc>) => T,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const late = setTimeout(
      () =>
        frames.destroy(unavailable(`no greeting on the supervisor's socket in ${timeoutMs} ms`)),
      timeoutMs,
    );
    void frames.closed.then((failure) => {
      clearTimeout(late);
      reject(failure ?? unavailable("the supervisor's socket was closed before the greeting"));
    });
    frames.receive((body) => {
      clearTimeout(late);
      frames.receive(() => {
        throw unsound('a message out of turn');
      });
      resolve(accept(fromBinary(schema, body)));
    });
  });
}
