/** The limits that a supervisor holds, from the configuration that it shares with the server. */
import type { SupervisorLimits } from '../supervisor/limits.js';
import type { Configuration } from './config.js';

export function supervisorLimits({
  limits,
  log,
}: Pick<Configuration, 'limits' | 'log'>): SupervisorLimits {
  return {
    terminalsPerOwner: limits.terminals_per_owner,
    logBytesPerOwner: limits.log_bytes_per_owner,
    life: {
      ...(limits.terminal_idle_seconds !== undefined && {
        idleMs: limits.terminal_idle_seconds * 1000,
      }),
      ...(limits.terminal_lifetime_seconds !== undefined && {
        lifetimeMs: limits.terminal_lifetime_seconds * 1000,
      }),
    },
    ...(log.seal_bytes !== undefined && { logSealBytes: log.seal_bytes }),
    ...(log.retain_seconds !== undefined && { logRetainMs: log.retain_seconds * 1000 }),
    ...(log.retain_bytes !== undefined && { logRetainBytes: log.retain_bytes }),
  };
}
