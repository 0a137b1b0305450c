/** The server's end of an output connection. */
import { fromBinary } from '@bufbuild/protobuf';
import { AsyncQueue } from '../../core/asyncQueue.js';
import { BLOCK_BYTES, borrowBlock, type EventBlock, HEAD_BYTES } from '../../core/eventBlocks.js';
import { OutputFrameSchema } from '../../gen/internal/grantty/internal/v1/output_pb.js';
import type { LiveItem, LiveOutput } from '../api.js';
import { decodeItem, readOutput } from './eventCodec.js';
import { decodeFailure } from './failureCodec.js';
import type { FrameSocket } from './frameSocket.js';
import { unavailable } from './protocol.js';

/**
 * Bytes of messages that wait for the consumer here; above it the supervisor is held back by the
 * kernel's buffers, and there its own bound counts.
 */
const MAX_AHEAD_BYTES = 1024 * 1024;

/** Owns `frames`: they are closed when the items end, however they do. */
export function receiveOutput(
  frames: FrameSocket,
  nextSeq: number,
  signal: AbortSignal,
): LiveOutput {
  const queue = new AsyncQueue<{ readonly item: LiveItem; readonly bytes: number }>(Infinity);
  let ahead = 0;
  const end = () => {
    queue.end();
    frames.destroy();
  };
  const decode = (body: Uint8Array): LiveItem | undefined => {
    const frame = fromBinary(OutputFrameSchema, body);
    const item = decodeItem(frame);
    if (frame.failure) queue.fail(decodeFailure(frame.failure));
    else if (!item) queue.end();
    return item;
  };
  /** Where the body that comes next lies, if it is a large one. */
  let block: EventBlock | undefined;
  const memory = (size: number): Buffer => {
    const fits = size > BLOCK_BYTES / 2 && size <= BLOCK_BYTES - HEAD_BYTES;
    block = fits ? borrowBlock() : undefined;
    return block?.bytes.subarray(HEAD_BYTES, HEAD_BYTES + size) ?? Buffer.allocUnsafe(size);
  };
  frames.receive((body) => {
    const item = readOutput(body) ?? decode(body);
    if (!item) return;
    queue.push({ item: block ? lent(item, block) : item, bytes: body.length });
    ahead += body.length;
    if (ahead > MAX_AHEAD_BYTES) frames.pause();
  }, memory);
  void frames.closed.then((failure) => {
    signal.removeEventListener('abort', end);
    queue.fail(unavailable('the connection to the supervisor was lost', failure));
  });
  signal.addEventListener('abort', end, { once: true });
  if (signal.aborted) end();

  async function* items(): AsyncGenerator<LiveItem, void, undefined> {
    try {
      for await (const { item, bytes } of queue) {
        if (ahead > MAX_AHEAD_BYTES && ahead - bytes <= MAX_AHEAD_BYTES) frames.resume();
        ahead -= bytes;
        yield item;
      }
    } finally {
      frames.destroy();
    }
  }
  return { nextSeq, items: items() };
}

/** What stood in front of a lone event has been read, and what lies in front of the message is ours. */
function lent(item: LiveItem, { bytes, loan }: EventBlock): LiveItem {
  if (item.kind !== 'events') return item;
  const [event, another] = item.events;
  const alone = event?.type === 'pty.output' && another === undefined;
  return { ...item, loan, room: alone ? event.data.byteOffset - bytes.byteOffset : 0 };
}
