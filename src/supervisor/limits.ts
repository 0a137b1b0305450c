/** What one supervisor allows its terminals: from the configuration, or the defaults. */
import {
  DEFAULT_STOP_GRACE_MS,
  MAX_LIVE_TERMINALS_PER_OWNER,
  MAX_LOG_BYTES_PER_OWNER,
} from '../core/limits.js';
import type { LifeLimits } from './instanceLife.js';

/** Milliseconds between SIGTERM and SIGKILL for a terminal that nobody asked to end. */
export const END_GRACE_MS = DEFAULT_STOP_GRACE_MS;

export interface SupervisorLimits {
  readonly terminalsPerOwner: number;
  /** Bytes of log over all terminals of one owner; above it their output is held back. */
  readonly logBytesPerOwner: number;
  /** Bytes of events.jsonl above which it is sealed; absent: never. */
  readonly logSealBytes?: number;
  /** Bytes of one terminal's log above which its oldest sealed parts are removed; absent: never. */
  readonly logRetainBytes?: number;
  /** Milliseconds after which complete sealed parts are removed; absent: never. */
  readonly logRetainMs?: number;
  /** Of each instance; see `LifeLimits`. */
  readonly life: LifeLimits;
}

export const defaultLimits: SupervisorLimits = {
  terminalsPerOwner: MAX_LIVE_TERMINALS_PER_OWNER,
  logBytesPerOwner: MAX_LOG_BYTES_PER_OWNER,
  life: {},
};
