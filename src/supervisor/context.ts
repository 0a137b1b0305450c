/** What every terminal of one supervisor shares. */
import { readFileSync } from 'node:fs';
import type { TerminalTuple } from '../core/names.js';
import type { Cgroups } from '../pty/cgroup.js';
import type { EventLogOptions } from '../store/eventLog.js';
import { Admission } from './admission.js';
import type { InProcessOptions } from './inProcess.js';
import type { Isolation } from './isolation.js';
import { Leases } from './leases.js';
import { systemTicker, type Ticker } from './lifeSweep.js';
import type { SupervisorLimits } from './limits.js';
import { LogQuota } from './logQuota.js';
import type { Terminal } from './terminal.js';

/** The part of a logger that is used below the server; pino's logger is one. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/**
 * When output that the kernel has is made durable: every 100 ms, before each batch is seen, or
 * never. An exit and metadata always are.
 */
export type LogSync = 'interval' | 'batch' | 'off';

export interface SupervisorContext {
  readonly isolation: Isolation;
  readonly leases: Leases;
  readonly admission: Admission;
  readonly logSync: LogSync;
  /** Sealing and retention of logs, see `EventLogOptions`. */
  readonly logOptions: Pick<EventLogOptions, 'log' | 'maxBytes' | 'retainBytes'>;
  readonly logQuota: LogQuota;
  /** Absent: processes are found by what /proc says of them. */
  readonly cgroups?: Cgroups | undefined;
  /** /proc/sys/kernel/random/boot_id. */
  readonly bootId: string;
  readonly log: Log;
  /** Milliseconds since the Unix epoch. */
  readonly now: () => number;
  /** Time that never steps back. */
  readonly ticker: Ticker;
  /** Its abort ends the grace of terminals that are being ended by the supervisor itself. */
  readonly hurry: AbortSignal;
  /** The service's address for a terminal: meta.json's `socket` while it runs. */
  readonly locator: (tuple: TerminalTuple) => string;
  /** A terminal's record has changed. */
  readonly changed: (terminal: Terminal) => void;
}

/** `changed` hears of each terminal whose record or state has changed. */
export function makeContext(
  options: InProcessOptions,
  limits: SupervisorLimits,
  changed: SupervisorContext['changed'],
): SupervisorContext {
  const { isolation, log, locator, now = Date.now, logSync = 'interval' } = options;
  return {
    isolation,
    leases: new Leases(now),
    admission: new Admission(limits.terminalsPerOwner),
    logSync,
    logOptions: {
      log,
      ...(limits.logSealBytes !== undefined && { maxBytes: limits.logSealBytes }),
      ...(limits.logRetainBytes !== undefined && { retainBytes: limits.logRetainBytes }),
    },
    cgroups: options.cgroups,
    logQuota: new LogQuota(limits.logBytesPerOwner),
    bootId: readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim(),
    log,
    now,
    ticker: options.ticker ?? systemTicker,
    hurry: options.hurry ?? new AbortController().signal,
    locator,
    changed,
  };
}
