/** What one supervisor allows its terminals: from the configuration, or the defaults. */
import { MAX_LIVE_TERMINALS_PER_OWNER, MAX_LOG_BYTES_PER_OWNER } from '../core/limits.js';

export interface SupervisorLimits {
  readonly terminalsPerOwner: number;
  /** Bytes of log over all terminals of one owner; above it their output is held back. */
  readonly logBytesPerOwner: number;
  /** Bytes of events.jsonl above which it is sealed; absent: never. */
  readonly logSealBytes?: number;
  /** Bytes of one terminal's log above which its oldest sealed parts are removed; absent: never. */
  readonly logRetainBytes?: number;
}

export const defaultLimits: SupervisorLimits = {
  terminalsPerOwner: MAX_LIVE_TERMINALS_PER_OWNER,
  logBytesPerOwner: MAX_LOG_BYTES_PER_OWNER,
};
