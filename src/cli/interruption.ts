/** What a person is told when a stream breaks and is resumed. */

export const LOSS_NOTE = 'the connection was lost; trying again';

/** What was printed after `lastSeq` is not on record any more, and is not what the terminal printed next. */
export function rewindNote(lastSeq: bigint): string {
  return `the host lost the end of the log in a power cut: what was shown after seq ${lastSeq} is gone; going on from there`;
}

/** The change from an expired token to a renewed one is part of the plan and nothing to tell. */
export function isLoss(failure: unknown): boolean {
  const reason =
    typeof failure === 'object' && failure !== null && 'reason' in failure
      ? failure.reason
      : undefined;
  return reason !== 'TOKEN_EXPIRED';
}
