/** Decide, then do: how a unary call takes effect, and how its outcome comes to the record. */
import { status as StatusCode } from '@grpc/grpc-js';
import { GranttyError } from '../core/errors.js';
import { authorize } from './authorize.js';
import type { Call } from './call.js';
import { withMetadata } from './decisionDraft.js';
import type { Ask, Caller, Gate, Permit } from './gate.js';
import { reasoned, statusCodeOf } from './status.js';

export function callerOf(call: Call, frame?: Caller['frame']): Caller {
  const { authorization, peer, path } = call;
  return { credentials: authorization, peer, path, ...(frame && { frame }) };
}

/** Runs `effect` if the decision allows it. What it throws goes on, told which decision it was. */
export async function perform<T>(
  gate: Gate,
  caller: Caller,
  ask: Ask,
  effect: (permit: Permit) => T | Promise<T>,
): Promise<T> {
  const permit = await authorize(gate, caller, ask);
  try {
    const done = effect(permit);
    const result = done instanceof Promise ? await done : done;
    recordOutcome(gate, permit);
    return result;
  } catch (error) {
    recordOutcome(gate, permit, error);
    throw withDecision(error, permit);
  }
}

type Decision = Pick<Permit, 'decisionId'>;

export function recordOutcome(
  gate: Gate,
  { decisionId }: Decision,
  error?: unknown,
  facts: {
    readonly firstSeq?: number;
    readonly lastSeq?: number;
    readonly inputBytes?: number;
    readonly outputBytes?: number;
  } = {},
): void {
  const code = error === undefined ? StatusCode.OK : statusCodeOf(error);
  const told = reasoned(error);
  gate.audit.outcome({
    decisionId,
    timeMs: gate.clock.now(),
    status: StatusCode[code] ?? 'UNKNOWN',
    ...(told instanceof GranttyError && { reason: told.reason }),
    ...facts,
  });
}

/** The error with the id of the decision under which it came about. */
export function withDecision(error: unknown, { decisionId }: Decision): unknown {
  return withMetadata(reasoned(error), { decision_id: decisionId });
}

/** The terminal that a decision about a stored one was about. */
export function stored({ terminal }: Permit): NonNullable<Permit['terminal']> {
  if (terminal === undefined) throw new TypeError('decided without a stored terminal');
  return terminal;
}
