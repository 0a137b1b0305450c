/** The trail of decisions: an intent before each effect, an outcome after it. */
import type { ChangeRecord } from './changeRecord.js';
import type { IntentRecord, OutcomeRecord } from './record.js';

export interface AuditTrail {
  /**
   * Resolves when the record is kept as safely as its action demands; only then may the effect
   * happen. Denials are recorded too; of many alike only one is written, and the others are counted.
   * @returns the decision id that is on record for it: of a denial that was counted, that of the one
   * that was written
   * @throws AUDIT_UNAVAILABLE: nothing may be done
   */
  intent(record: IntentRecord): Promise<string>;
  /** Never throws: the effect has happened. */
  outcome(record: OutcomeRecord): void;
  /**
   * Resolves when the change is durable.
   * @throws AUDIT_UNAVAILABLE; whether the change stands all the same is for the caller to say
   */
  change(record: ChangeRecord): Promise<void>;
}
