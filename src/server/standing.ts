/**
 * The authority that a stream stands on while it is open. It ends by time, by revocation, by new keys
 * and by a new policy; whoever delivers under it asks `holds` before each batch.
 */
import { GranttyError } from '../core/errors.js';
import { bearerToken } from './authentication.js';
import { authorize } from './authorize.js';
import { type Epochs, epochsOf, isEpoch } from './epochs.js';
import type { Ask, Caller, Gate, Permit } from './gate.js';

export class Standing {
  #token: string;
  #permit: Permit;
  #epochs: Epochs;

  private constructor(
    private readonly gate: Gate,
    private readonly caller: Caller,
    private readonly ask: Ask,
    token: string,
    permit: Permit,
    epochs: Epochs,
  ) {
    this.#token = token;
    this.#permit = permit;
    this.#epochs = epochs;
  }

  /**
   * Decides whether the stream may open. `later` is what it needs to stay open, where that is less.
   * @throws as `authorize`
   */
  static async open(gate: Gate, caller: Caller, ask: Ask, later = ask): Promise<Standing> {
    const epochs = epochsOf(gate);
    const permit = await authorize(gate, caller, ask);
    const { credentials } = caller;
    const token = typeof credentials === 'string' ? credentials : bearerToken(credentials);
    return new Standing(gate, caller, later, token, permit, epochs);
  }

  get permit(): Permit {
    return this.#permit;
  }

  /** Milliseconds since the Unix epoch. */
  get notAfter(): number {
    return this.#permit.lease.notAfter;
  }

  /** Whether what was decided still counts. Cheap: asked for every batch. */
  holds(): boolean {
    return this.gate.clock.now() < this.notAfter && isEpoch(this.gate, this.#epochs);
  }

  /** Decides again where that is needed, and says whether it was. @throws the refusal that ends the stream */
  async uphold(): Promise<boolean> {
    if (this.holds()) return false;
    do {
      const epochs = epochsOf(this.gate);
      this.#permit = await authorize(this.gate, this.callerOf('expiry'), this.ask);
      this.#epochs = epochs;
    } while (!this.holds());
    return true;
  }

  /** The same client by the token in force now, for one frame. */
  callerOf(frame: NonNullable<Caller['frame']>): Caller {
    return { ...this.caller, credentials: this.#token, frame };
  }

  /**
   * Puts another token of the same issuer and subject in force.
   * @throws the reason why the old one stays
   */
  async reauthenticate(token: string): Promise<void> {
    const epochs = epochsOf(this.gate);
    const caller = { ...this.caller, credentials: token, frame: 'reauthenticate' } as const;
    const permit = await authorize(this.gate, caller, this.ask);
    const { issuer, subject } = this.#permit.token;
    if (permit.token.issuer !== issuer || permit.token.subject !== subject) {
      throw new GranttyError('TOKEN_INVALID', 'the token is of another issuer or subject');
    }
    this.#token = token;
    this.#permit = permit;
    this.#epochs = epochs;
  }
}
