/** Decisions on the input frames of one stream: taken afresh each second, remembered in between. */
import type { Capability } from '../core/capability.js';
import { signalsRaisedBy } from '../core/signals.js';
import type { TerminalSnapshot } from '../supervisor/api.js';
import { authorize, chargeInput } from './authorize.js';
import { type Epochs, epochsOf, isEpoch } from './epochs.js';
import type { Gate, Permit } from './gate.js';
import { recordOutcome } from './perform.js';
import type { Standing } from './standing.js';

/** Milliseconds for which one decision, and its one record, stands for all frames alike. */
const DECISION_MS = 1_000;

const WRITE: Capability = 'terminal.write';

interface Held {
  readonly permit: Permit;
  readonly epochs: Epochs;
  readonly until: number;
  bytes: number;
}

export class InputDecisions implements Disposable {
  /** By the signals that the input would raise: a question for each set of them, eight at most. */
  readonly #held = new Map<string, Held>();

  constructor(
    private readonly gate: Gate,
    private readonly standing: Standing,
    private readonly terminal: TerminalSnapshot,
  ) {}

  /** The decision that stands for this frame too; its bytes are charged. @throws RATE_LIMITED */
  remembered(data: Uint8Array): Permit | undefined {
    const held = this.#held.get(signalsRaisedBy(data).join());
    if (held === undefined || !this.#isFresh(held)) return undefined;
    chargeInput(this.gate, held.permit.token, held.permit.grant, data.length);
    held.bytes += data.length;
    return held.permit;
  }

  /** Decides on one frame and charges its bytes. One call at a time. @throws as `authorize` */
  async decide(data: Uint8Array): Promise<Permit> {
    const signalBytes = signalsRaisedBy(data);
    const signals = signalBytes.join();
    this.#forget((one) => !this.#isFresh(one));
    const epochs = epochsOf(this.gate);
    const permit = await authorize(this.gate, this.standing.callerOf('input'), {
      action: WRITE,
      target: { kind: 'known', terminal: this.terminal },
      signalBytes,
      inputBytes: data.length,
    });
    const until = Math.min(this.gate.clock.now() + DECISION_MS, permit.lease.notAfter);
    this.#held.set(signals, { permit, epochs, until, bytes: data.length });
    return permit;
  }

  /** Forgets all decisions and puts on record what came of them: at the end, and for another token. */
  close(): void {
    this.#forget(() => true);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #forget(which: (held: Held) => boolean): void {
    for (const [signals, held] of this.#held) {
      if (!which(held)) continue;
      this.#held.delete(signals);
      recordOutcome(this.gate, held.permit, undefined, { inputBytes: held.bytes });
    }
  }

  #isFresh({ until, epochs }: Held): boolean {
    return this.gate.clock.now() < until && isEpoch(this.gate, epochs);
  }
}
