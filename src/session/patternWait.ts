/** Waits for a pattern in a terminal's output, from any point of its log on. */
import type { TerminalKey } from '../supervisor/api.js';
import type { EventSource } from './eventSource.js';
import { compilePattern } from './pattern.js';
import type { ScreenWorkers } from './screenWorkers.js';

export interface PatternWaitRequest {
  readonly key: TerminalKey;
  /** RE2 syntax; looked for in the text of each line, escape sequences taken out. */
  readonly pattern: string;
  /** Only output after this seq counts. */
  readonly afterSeq: number;
  /** Ends the wait: it rejects with the signal's reason. */
  readonly signal: AbortSignal;
}

export type PatternWaitResult =
  /** `seq`: of the event with which the pattern was there. */
  | { readonly kind: 'matched'; readonly seq: number }
  /** The process exited first. */
  | { readonly kind: 'exited'; readonly seq: number }
  /** The terminal was deleted first. */
  | { readonly kind: 'deleted' };

/**
 * Nothing is left out however fast the output comes: the log waits. Matching takes linear time and
 * happens on a worker.
 * @throws FIELD_INVALID for `pattern`, and as `EventSource`
 */
export async function waitForPattern(
  source: EventSource,
  workers: ScreenWorkers,
  { key, pattern, afterSeq, signal }: PatternWaitRequest,
): Promise<PatternWaitResult> {
  compilePattern(pattern);
  signal.throwIfAborted();
  const scanner = workers.openScanner(pattern);
  try {
    for await (const item of source.follow(key, afterSeq + 1, signal)) {
      if (item.kind === 'resized') continue;
      const output = item.events.filter((event) => event.type === 'pty.output');
      const seq = output.length > 0 ? await scanner.scan(output) : undefined;
      if (seq !== undefined) return { kind: 'matched', seq };
      const exit = item.events.find((event) => event.type === 'process.exit');
      if (exit) return { kind: 'exited', seq: exit.seq };
    }
    signal.throwIfAborted();
    return { kind: 'deleted' };
  } finally {
    scanner.close();
  }
}
