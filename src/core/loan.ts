/** Memory that is lent together with a value, and used again when nobody reads it any more. */

/**
 * Whoever is given the value is its one holder. Who passes it on to somebody that reads it later holds
 * it once more for them, and each holder releases once. One that never does takes nothing from
 * anybody: then the memory is not used again, and is garbage when the value is. Whoever releases once
 * too often might show one reader the bytes of another: that throws where nobody catches it.
 */
export class Loan {
  #holders = 1;

  constructor(
    /** Called once, when the last holder has released: the memory may be written to from then on. */
    private readonly giveBack: () => void,
  ) {}

  /** @throws Error when it was given back: somebody reads what is no longer theirs */
  hold(): void {
    this.#checkHeld();
    this.#holders += 1;
  }

  /** Bound, so that it can be passed on. @throws Error as `hold` */
  readonly release = (): void => {
    this.#checkHeld();
    this.#holders -= 1;
    if (this.#holders === 0) this.giveBack();
  };

  #checkHeld(): void {
    if (this.#holders === 0) throw new Error('the loan was given back already');
  }
}
