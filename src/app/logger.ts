/** The log of a server or supervisor: one JSON object a line on standard error. */
import { type Logger, pino } from 'pino';
import type { Configuration } from './config.js';

/** Bytes of lines that wait while standard error takes none; what does not fit is lost. */
const MAX_WAITING_BYTES = 1024 * 1024;

/**
 * Without buffering: the last lines before a crash are the ones that matter. A log that cannot be
 * written, on a full disk say, is no reason to end: who serves terminals goes on without it.
 */
export function loggerOf({ log }: Pick<Configuration, 'log'>): Logger {
  const lines = pino.destination({ dest: 2, sync: true, maxLength: MAX_WAITING_BYTES });
  lines.on('error', () => {});
  return pino({ level: log.level }, lines);
}
