/** Many records alike in a short time: the first is written, the rest are counted. */
import type { AuditClock } from './auditClock.js';
import {
  type IntentRecord,
  type Written,
  writePeer,
  writePrincipal,
  writeTarget,
} from './record.js';

/**
 * Keys counted at one time. Above it all further ones share one count for each reason, so that a
 * flood from many addresses costs a bounded number of records and bytes.
 */
const MAX_KEYS = 1_024;

/** What was counted, told at the end of the window. */
export interface Counted {
  /** The one that was written; absent where different ones were counted together. */
  readonly like: IntentRecord | undefined;
  readonly reason: IntentRecord['reason'];
  readonly count: number;
  readonly inputBytes: number;
  readonly firstMs: number;
  readonly lastMs: number;
}

interface Window {
  readonly like: IntentRecord | undefined;
  readonly reason: IntentRecord['reason'];
  count: number;
  inputBytes: number;
  firstMs: number;
  lastMs: number;
}

export class Coalescer {
  readonly #windows = new Map<string, Window>();
  #cancel: (() => void) | undefined;

  constructor(
    private readonly clock: AuditClock,
    private readonly windowMs: number,
    private readonly emit: (counted: Counted) => void,
  ) {}

  /** True: it was counted and need not be written. */
  absorb(key: string, record: IntentRecord): boolean {
    const known = this.#windows.get(key);
    if (known === undefined && this.#windows.size < MAX_KEYS) {
      this.#open(key, record, record);
      return false;
    }
    const shared = `*${record.reason}`;
    const window = known ?? this.#windows.get(shared) ?? this.#open(shared, record, undefined);
    if (window.count === 0) window.firstMs = record.timeMs;
    window.count += 1;
    window.inputBytes += record.inputBytes ?? 0;
    window.lastMs = record.timeMs;
    return true;
  }

  /** Tells what was counted so far and begins anew. */
  flush(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const windows = [...this.#windows.values()];
    this.#windows.clear();
    for (const window of windows) {
      if (window.count > 0) this.emit(window);
    }
  }

  #open(key: string, { reason, timeMs }: IntentRecord, like: IntentRecord | undefined): Window {
    const window = { like, reason, count: 0, inputBytes: 0, firstMs: timeMs, lastMs: timeMs };
    this.#windows.set(key, window);
    this.#cancel ??= this.clock.after(this.windowMs, () => this.flush());
    return window;
  }
}

/** What was counted, as it is written. */
export function writeCounted(
  kind: 'input' | 'stranger',
  { like, reason, count, inputBytes, firstMs, lastMs }: Counted,
  timeMs: number,
): Written {
  return {
    record: 'counted',
    time_ms: timeMs,
    of: kind,
    like: like?.decisionId,
    principal: like?.principal && writePrincipal(like.principal),
    peer: like && writePeer(like.peer),
    rpc: like?.rpc,
    action: like?.action,
    target: like?.target && writeTarget(like.target),
    decision: 'deny',
    reason,
    count,
    input_bytes: inputBytes,
    first_ms: firstMs,
    last_ms: lastMs,
  };
}
