/** How far a stream of one terminal's events has come: what to resume from, and what is new. */
import type { Started } from '../gen/public/grantty/v1/stream_pb.js';
import type {
  AttachResponse,
  WatchRequestSchema,
  WatchResponse,
} from '../gen/public/grantty/v1/terminal_service_pb.js';
import { CallError } from './failure.js';
import type { Init } from './grpc.js';

export type Start = NonNullable<Init<typeof WatchRequestSchema>['start']>;

type WireEvent = WatchResponse['event'] | AttachResponse['event'];

export class Position {
  #lastSeq: bigint | undefined;
  #logEpoch: number | undefined;
  #size: string | undefined;

  constructor(private readonly start: Start | undefined) {
    if (start?.case !== 'after') return;
    this.#lastSeq = start.value.afterSeq;
    this.#logEpoch = start.value.logEpoch;
  }

  /** Seq of the last event that was given; undefined before the first. */
  get lastSeq(): bigint | undefined {
    return this.#lastSeq;
  }

  started(started: Started): void {
    // What the caller has held in an earlier epoch too: the server has compared.
    this.#logEpoch = started.logEpoch;
    // From here on live output counts, also that of a time without a connection.
    if (this.#lastSeq === undefined && this.start?.case === 'live') {
      this.#lastSeq = started.nextSeq - 1n;
    }
  }

  /** Where the next call starts: at first where the caller said, then after the last event. */
  get next(): Start | undefined {
    if (this.#lastSeq === undefined) return this.start;
    const epoch = this.#logEpoch === undefined ? {} : { logEpoch: this.#logEpoch };
    return { case: 'after', value: { afterSeq: this.#lastSeq, ...epoch } };
  }

  /**
   * Goes back to where the failure says that the log ends now; the seq of the last event that still
   * holds. Undefined when that is not what the failure says.
   */
  rewound(failure: unknown): bigint | undefined {
    if (!(failure instanceof CallError) || failure.reason !== 'LOG_REWOUND') return undefined;
    const { last_seq, log_epoch } = failure.metadata;
    if (last_seq === undefined || log_epoch === undefined) return undefined;
    const lastSeq = BigInt(last_seq);
    if (this.#lastSeq === undefined || lastSeq >= this.#lastSeq) return undefined;
    this.#lastSeq = lastSeq;
    this.#logEpoch = Number(log_epoch);
    return lastSeq;
  }

  /** Takes note of the event; false when the caller has it already. */
  advance(event: WireEvent): boolean {
    switch (event.case) {
      case 'output':
      case 'exited':
        if (this.#lastSeq !== undefined && event.value.seq <= this.#lastSeq) return false;
        this.#lastSeq = event.value.seq;
        return true;
      case 'resized': {
        const size = `${event.value.size?.columns}x${event.value.size?.rows}`;
        if (size === this.#size) return false;
        this.#size = size;
        return true;
      }
      default:
        return true;
    }
  }
}
