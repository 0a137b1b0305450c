/** The log of a server or supervisor: one JSON object a line on standard error. */
import { type Logger, pino } from 'pino';
import type { Configuration } from './config.js';

/** Without buffering: the last lines before a crash are the ones that matter. */
export function loggerOf({ log }: Pick<Configuration, 'log'>): Logger {
  return pino({ level: log.level }, pino.destination({ dest: 2, sync: true }));
}
