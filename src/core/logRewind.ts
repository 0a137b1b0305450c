/** What survived of a log that lost its end: which of the numbers that a client saw still hold. */

/** The log lost what came after `lastSeq` of this epoch; the next epoch goes on from there. */
export interface LogRewind {
  readonly epoch: number;
  /** 0: nothing survived. */
  readonly lastSeq: number;
}

/** Rewinds kept of one log; above it the two oldest become one that promises no more than either. */
export const MAX_REWINDS = 16;

/**
 * With one more, oldest first. One that a later rewind went behind says nothing any more and goes,
 * so that both the epochs and the seqs of the list ascend.
 */
export function addRewind(rewinds: readonly LogRewind[], latest: LogRewind): readonly LogRewind[] {
  const kept = [...rewinds.filter(({ lastSeq }) => lastSeq < latest.lastSeq), latest];
  const [oldest, second] = kept;
  if (kept.length <= MAX_REWINDS || !oldest || !second) return kept;
  return [{ epoch: second.epoch, lastSeq: oldest.lastSeq }, ...kept.slice(2)];
}

/** Whether a list may be one that `addRewind` made of a log that is in this epoch. */
export function isRewindHistory(rewinds: readonly LogRewind[], logEpoch: number): boolean {
  if (rewinds.length > MAX_REWINDS) return false;
  return rewinds.every(({ epoch, lastSeq }, at) => {
    const before = rewinds[at - 1];
    const isNext = before === undefined || (before.epoch < epoch && before.lastSeq < lastSeq);
    return isNext && epoch < logEpoch;
  });
}

/**
 * The last seq that means the same now as it did in `epoch`: whoever saw more there holds events
 * that are gone. Infinity in the present epoch; 0 for an epoch of which nothing is known.
 */
export function survivingSeq(
  log: { readonly logEpoch: number; readonly logRewinds?: readonly LogRewind[] },
  epoch: number,
): number {
  if (epoch === log.logEpoch) return Number.POSITIVE_INFINITY;
  if (epoch > log.logEpoch) return 0;
  return log.logRewinds?.find((rewind) => rewind.epoch >= epoch)?.lastSeq ?? 0;
}
