/** The trail of decisions: an intent before each effect, an outcome after it. */
import type { Logger } from 'pino';
import { type IntentRecord, type OutcomeRecord, writeIntent, writeOutcome } from './record.js';

export interface AuditTrail {
  /**
   * Resolves when the record is kept as safely as its action demands; only then may the effect
   * happen. Denials are recorded too.
   * @throws AUDIT_UNAVAILABLE: nothing may be done
   */
  intent(record: IntentRecord): Promise<void>;
  /** Never throws: the effect has happened. */
  outcome(record: OutcomeRecord): void;
}

/** A trail that is as safe as the log: one structured line for each record. */
export function loggerTrail(logger: Pick<Logger, 'info'>): AuditTrail {
  return {
    async intent(record) {
      logger.info({ audit: writeIntent(record) }, 'decision');
    },
    outcome(record) {
      logger.info({ audit: writeOutcome(record) }, 'outcome');
    },
  };
}
