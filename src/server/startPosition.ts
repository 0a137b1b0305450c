/** Where a stream begins: what the request says, against what the log has. */
import { fieldInvalid, GranttyError } from '../core/errors.js';
import { survivingSeq } from '../core/logRewind.js';
import type { LogPosition } from '../gen/public/grantty/v1/stream_pb.js';
import type { LogReader } from '../store/reader/logReader.js';
import type { TerminalSnapshot } from '../supervisor/api.js';
import { parseCount } from './fields.js';

/** The `start` oneof of WatchRequest and AttachOpen. */
export type Start =
  | { readonly case: 'after'; readonly value: LogPosition }
  | { readonly case: 'tailBytes'; readonly value: bigint }
  | { readonly case: 'live'; readonly value: boolean }
  | { readonly case: undefined; readonly value?: undefined };

/**
 * The seq after which to deliver; `lastSeq` is that of the last event in the log.
 * @throws FIELD_INVALID, SEQ_TRIMMED, LOG_REWOUND
 */
export async function startPosition(
  start: Start,
  terminal: TerminalSnapshot,
  lastSeq: number,
  openLog: () => Promise<LogReader>,
): Promise<number> {
  switch (start.case) {
    case undefined:
      return terminal.firstSeq - 1;
    case 'live':
      if (!start.value) throw fieldInvalid('live', 'must be true where it is given');
      return lastSeq;
    case 'tailBytes': {
      const bytes = parseCount('tail_bytes', start.value);
      if (bytes === 0 || lastSeq < terminal.firstSeq) return lastSeq;
      await using log = await openLog();
      return Math.max(await seqOfTailByte(log, bytes, lastSeq), terminal.firstSeq) - 1;
    }
    case 'after':
      return afterPosition(start.value.afterSeq, start.value.logEpoch, terminal, lastSeq);
  }
}

/** Seq of the event that holds the `n`-th last byte of output; may be too small by what was trimmed. */
async function seqOfTailByte(log: LogReader, n: number, lastSeq: number): Promise<number> {
  // From there on there are fewer than n bytes, unless the last event has more by itself.
  const seq = await log.seqForTail(n - 1, lastSeq);
  if (seq < lastSeq) return seq - 1;
  for await (const [event] of log.read(lastSeq, lastSeq)) {
    if (event?.type === 'pty.output' && event.data.length >= n) return lastSeq;
  }
  return lastSeq - 1;
}

/** @throws FIELD_INVALID, SEQ_TRIMMED, LOG_REWOUND */
export function afterPosition(
  afterSeq: bigint,
  logEpoch: number | undefined,
  { record, firstSeq }: TerminalSnapshot,
  lastSeq: number,
): number {
  const after = parseCount('after_seq', afterSeq);
  const surviving = logEpoch === undefined ? after : survivingSeq(record, logEpoch);
  if (after > surviving) {
    throw new GranttyError(
      'LOG_REWOUND',
      `of epoch ${logEpoch} nothing after seq ${surviving} is in the log, which is in epoch ${record.logEpoch}: the host lost it, in a power cut say, or it never was; go on after seq ${surviving} without an epoch or under the present one`,
      { metadata: { last_seq: String(surviving), log_epoch: String(record.logEpoch) } },
    );
  }
  if (after > lastSeq) {
    throw fieldInvalid('after_seq', `is beyond the log, which ends at ${lastSeq}`);
  }
  if (after < firstSeq - 1) {
    throw new GranttyError('SEQ_TRIMMED', 'history from there on is no longer kept', {
      metadata: { first_seq: String(firstSeq) },
    });
  }
  return after;
}
