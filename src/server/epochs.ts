/** What a decision depended on besides time: while it stays the same, the decision can be remembered. */
import type { Gate } from './gate.js';

export interface Epochs {
  readonly keys: number;
  readonly revocations: number;
  readonly policy: string;
}

/** To be taken before the decision that it goes with. */
export function epochsOf({ tokens, revocations, policy }: Gate): Epochs {
  return { keys: tokens.epoch, revocations: revocations.epoch, policy: policy.hash };
}

/** Whether it is the same still. */
export function isEpoch(gate: Gate, { keys, revocations, policy }: Epochs): boolean {
  return (
    gate.tokens.epoch === keys &&
    gate.revocations.epoch === revocations &&
    gate.policy.hash === policy
  );
}
