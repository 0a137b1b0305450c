/** The supervisor's end of an output connection: live output, as fast as the client reads it. */
import { create } from '@bufbuild/protobuf';
import {
  type Output,
  WelcomeSchema,
} from '../../gen/internal/grantty/internal/v1/connection_pb.js';
import type { LiveOutput, Supervisor } from '../api.js';
import { encodeFrame, encodeItem, type FrameParts } from './eventCodec.js';
import { encodeFailure } from './failureCodec.js';
import type { FrameSocket } from './frameSocket.js';
import type { SocketLog } from './protocol.js';
import { decodeKey } from './specCodec.js';

/**
 * Resolves when the connection is closed. While the client does not read, nothing is taken from the
 * supervisor's queue, which overflows and ends the output: that is then said in its place.
 * @throws what `Supervisor.openOutput` throws, before anything was answered
 */
export async function serveOutput(
  frames: FrameSocket,
  supervisor: Supervisor,
  { key }: Output,
  log: SocketLog,
): Promise<void> {
  const gone = new AbortController();
  void frames.closed.then(() => gone.abort());
  const { nextSeq, items } = await supervisor.openOutput(decodeKey(key), gone.signal);
  frames.send(
    WelcomeSchema,
    create(WelcomeSchema, { outcome: { case: 'opened', value: { nextSeq } } }),
  );
  frames.sendParts(await pump(frames, items, gone.signal, log));
  frames.close();
  await frames.closed;
}

/** The message that ends the output. */
async function pump(
  frames: FrameSocket,
  items: LiveOutput['items'],
  gone: AbortSignal,
  log: SocketLog,
): Promise<FrameParts> {
  try {
    for await (const item of items) {
      const loan = item.kind === 'events' ? item.loan : undefined;
      for (const parts of encodeItem(item)) {
        loan?.hold();
        if (!frames.sendParts(parts, loan?.release)) await frames.drained();
        if (gone.aborted) break;
      }
      loan?.release();
    }
    return encodeFrame({ ended: true });
  } catch (error) {
    return encodeFrame({ failure: encodeFailure(error, log) });
  }
}
