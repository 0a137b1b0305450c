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
  /** What all of them are found by: the id of the one that was written, else of the first. */
  readonly decisionId: string;
  /** The one that was written; absent where different ones were counted together. */
  readonly like: IntentRecord | undefined;
  readonly reason: IntentRecord['reason'];
  readonly count: number;
  readonly inputBytes: number;
  readonly firstMs: number;
  readonly lastMs: number;
}

interface Window {
  readonly decisionId: string;
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

  /** The id that it was counted under, and need not be written; undefined: it must be. */
  absorb(key: string, record: IntentRecord): string | undefined {
    const known = this.#windows.get(key);
    if (known === undefined && this.#windows.size < MAX_KEYS) {
      this.#open(key, record, record);
      return undefined;
    }
    const shared = `*${record.reason}`;
    const window = known ?? this.#windows.get(shared) ?? this.#open(shared, record, undefined);
    if (window.count === 0) window.firstMs = record.timeMs;
    window.count += 1;
    window.inputBytes += record.inputBytes ?? 0;
    window.lastMs = record.timeMs;
    return window.decisionId;
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

  #open(key: string, first: IntentRecord, like: IntentRecord | undefined): Window {
    const { decisionId, reason, timeMs } = first;
    const times = { firstMs: timeMs, lastMs: timeMs };
    const window = { decisionId, like, reason, count: 0, inputBytes: 0, ...times };
    this.#windows.set(key, window);
    this.#cancel ??= this.clock.after(this.windowMs, () => this.flush());
    return window;
  }
}

/** What was counted, as it is written. */
export function writeCounted(
  kind: 'input' | 'stranger',
  { decisionId, like, reason, count, inputBytes, firstMs, lastMs }: Counted,
  timeMs: number,
): Written {
  return {
    record: 'counted',
    time_ms: timeMs,
    of: kind,
    like: like?.decisionId,
    decision_id: like === undefined ? decisionId : undefined,
    principal: like?.principal && writePrincipal(like.principal),
    actors: like?.principal?.actors,
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
