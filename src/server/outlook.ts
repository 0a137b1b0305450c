/** What a stream over many terminals lets its caller see, for as long as it is open. */

import { type Epochs, epochsOf, isEpoch } from './epochs.js';
import type { Caller, Gate } from './gate.js';
import { authorizeItems, type Sight } from './sight.js';

export class Outlook {
  private constructor(
    private readonly gate: Gate,
    private readonly caller: Caller,
    private epochs: Epochs,
    public sight: Sight,
  ) {}

  /** @throws as `authorizeItems` */
  static async open(gate: Gate, caller: Caller): Promise<Outlook> {
    const epochs = epochsOf(gate);
    return new Outlook(gate, caller, epochs, await authorizeItems(gate, caller, 'terminal.read'));
  }

  /** When it has to be looked at again at the latest, milliseconds since the Unix epoch. */
  get looksAgainAt(): number {
    return Math.min(this.sight.notAfter, this.sight.narrowsAt);
  }

  /**
   * Decides again where that is needed, and says whether it was: then other terminals may be seen.
   * @throws the refusal that ends the stream
   */
  async uphold(): Promise<boolean> {
    const holds = () =>
      this.gate.clock.now() < this.looksAgainAt && isEpoch(this.gate, this.epochs);
    if (holds()) return false;
    do {
      const epochs = epochsOf(this.gate);
      const caller = { ...this.caller, frame: 'expiry' } as const;
      this.sight = await authorizeItems(this.gate, caller, 'terminal.read');
      this.epochs = epochs;
    } while (!holds());
    return true;
  }
}
