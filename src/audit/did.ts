/** Who did what: decisions in the order in which they were taken, each with what came of it. */
import { readRecords } from './reading.js';
import type { WrittenCounted, WrittenIntent, WrittenOutcome } from './writtenRecords.js';

export interface DidQuestion {
  readonly owner?: string;
  readonly id?: string;
  readonly subject?: string;
  /** One of those who acted for the subject. */
  readonly actor?: string;
  readonly jti?: string;
  readonly action?: string;
  readonly decision?: 'allow' | 'deny';
  /** Milliseconds since the Unix epoch, both inclusive. */
  readonly fromMs?: number;
  readonly toMs?: number;
}

export interface Deed {
  readonly intent: WrittenIntent | WrittenCounted;
  /** Absent for a denial, and where none was found. */
  readonly outcome?: WrittenOutcome;
}

/**
 * Deeds that wait for their outcomes. Above it the oldest is told without: a stream that stays open
 * for long has its outcome far behind.
 */
const MAX_WAITING = 10_000;

/** One pass, in constant memory. */
export async function* did(dir: string, question: DidQuestion): AsyncGenerator<Deed> {
  /** In their order; one with its outcome waits for those before it. */
  const waiting = new Map<
    string,
    { intent: Deed['intent']; outcome?: WrittenOutcome; done: boolean }
  >();
  for await (const record of readRecords(dir, ['intent', 'counted', 'outcome'])) {
    if (record.record === 'outcome') {
      const deed = waiting.get(record.decision_id);
      if (deed) waiting.set(record.decision_id, { ...deed, outcome: record, done: true });
    } else if (isAskedFor(record, question)) {
      const key = record.record === 'intent' ? record.decision_id : `counted ${record.seq}`;
      waiting.set(key, { intent: record, done: record.decision === 'deny' });
    }
    for (const [key, { intent, outcome, done }] of waiting) {
      if (!done && waiting.size <= MAX_WAITING) break;
      waiting.delete(key);
      yield { intent, ...(outcome && { outcome }) };
    }
  }
  for (const { intent, outcome } of waiting.values()) yield { intent, ...(outcome && { outcome }) };
}

function isAskedFor(record: WrittenIntent | WrittenCounted, question: DidQuestion): boolean {
  const { principal, actors = [], target, action, decision, time_ms: timeMs } = record;
  const { owner, id, subject, actor, jti, fromMs = 0, toMs = Number.MAX_SAFE_INTEGER } = question;
  return (
    (owner === undefined || target?.owner === owner) &&
    (id === undefined || target?.terminal === id) &&
    (subject === undefined || principal?.sub === subject) &&
    (actor === undefined || actors.includes(actor)) &&
    (jti === undefined || principal?.jti === jti) &&
    (question.action === undefined || action === question.action) &&
    (question.decision === undefined || decision === question.decision) &&
    timeMs >= fromMs &&
    timeMs <= toMs
  );
}
