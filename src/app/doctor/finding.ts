/** What a check of `ctx doctor` found. */

/** `warn`: it works, and not as well as it could. `fail`: something does not work. */
export type Level = 'ok' | 'warn' | 'fail';

export interface Finding {
  /** What was looked at, in a word or two. */
  readonly check: string;
  readonly level: Level;
  readonly found: string;
  /** What to do about it; absent where nothing is to be done. */
  readonly advice?: string;
}

export function ok(check: string, found: string): Finding {
  return { check, level: 'ok', found };
}

export function warn(check: string, found: string, advice: string): Finding {
  return { check, level: 'warn', found, advice };
}

export function fail(check: string, found: string, advice: string): Finding {
  return { check, level: 'fail', found, advice };
}
