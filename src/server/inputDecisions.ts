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
  /** The signals that the input would raise: other signals are another question. */
  readonly signals: string;
  bytes: number;
}

export class InputDecisions implements Disposable {
  #held: Held | undefined;

  constructor(
    private readonly gate: Gate,
    private readonly standing: Standing,
    private readonly terminal: TerminalSnapshot,
  ) {}

  /** Decides on one frame and charges its bytes. One call at a time. @throws as `authorize` */
  async decide(data: Uint8Array): Promise<Permit> {
    const signalBytes = signalsRaisedBy(data);
    const signals = signalBytes.join();
    const held = this.#held;
    if (held !== undefined && held.signals === signals && this.#isFresh(held)) {
      chargeInput(this.gate, held.permit.token, held.permit.grant, data.length);
      held.bytes += data.length;
      return held.permit;
    }
    this.close();
    const epochs = epochsOf(this.gate);
    const permit = await authorize(this.gate, this.standing.callerOf('input'), {
      action: WRITE,
      target: { kind: 'known', terminal: this.terminal },
      signalBytes,
      inputBytes: data.length,
    });
    const until = Math.min(this.gate.clock.now() + DECISION_MS, permit.lease.notAfter);
    this.#held = { permit, epochs, until, signals, bytes: data.length };
    return permit;
  }

  /** Forgets the decision and puts on record what came of it: at the end, and for another token. */
  close(): void {
    const held = this.#held;
    this.#held = undefined;
    if (held) recordOutcome(this.gate, held.permit, undefined, { inputBytes: held.bytes });
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #isFresh({ until, epochs }: Held): boolean {
    return this.gate.clock.now() < until && isEpoch(this.gate, epochs);
  }
}
