/** What a person is told when a stream breaks and is resumed. */

export const LOSS_NOTE = 'the connection was lost; trying again';

/** The change from an expired token to a renewed one is part of the plan and nothing to tell. */
export function isLoss(failure: unknown): boolean {
  const reason =
    typeof failure === 'object' && failure !== null && 'reason' in failure
      ? failure.reason
      : undefined;
  return reason !== 'TOKEN_EXPIRED';
}
