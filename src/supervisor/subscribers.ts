/** Who follows one terminal's live output, each by a bounded queue, and the seq that they are at. */
import { AsyncQueue } from '../core/asyncQueue.js';
import { GranttyError } from '../core/errors.js';
import type { LiveItem } from './api.js';

/** Bytes of output that wait for one subscriber that does not take them; then it is ended. */
const MAX_SUBSCRIBER_BYTES = 8 * 1024 * 1024;

export class Subscribers {
  /** Seq of the next event that they will get; of the present instance only. */
  nextSeq = 1;
  readonly #queues = new Set<AsyncQueue<LiveItem>>();

  /** What is published from now on, until the signal fires. */
  open(signal: AbortSignal): AsyncIterable<LiveItem> {
    const queue = new AsyncQueue<LiveItem>(MAX_SUBSCRIBER_BYTES, outputBytes);
    const end = () => {
      this.#queues.delete(queue);
      queue.end();
    };
    this.#queues.add(queue);
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    return queue;
  }

  /** Each subscriber is one holder of the item's loan; this is given back here. */
  publish(item: LiveItem): void {
    const loan = item.kind === 'events' ? item.loan : undefined;
    if (item.kind === 'events') {
      this.nextSeq = (item.events.at(-1)?.seq ?? this.nextSeq - 1) + 1;
    }
    for (const queue of this.#queues) {
      if (queue.push(item)) {
        loan?.hold();
        continue;
      }
      this.#queues.delete(queue);
      queue.fail(
        new GranttyError('SUPERVISOR_UNAVAILABLE', 'too far behind the live output; read the log'),
      );
    }
    loan?.release();
  }

  end(): void {
    for (const queue of this.#queues) queue.end();
  }
}

function outputBytes(item: LiveItem): number {
  if (item.kind === 'resized') return 1;
  return item.events.reduce(
    (sum, event) => sum + (event.type === 'pty.output' ? event.data.length : 1),
    0,
  );
}
