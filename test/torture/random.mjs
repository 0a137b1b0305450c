// Chance that follows from a seed: whoever has the seed makes the same choices again.
import { createHash } from 'node:crypto';

export class Random {
  #state;

  constructor(seed) {
    this.seed = String(seed);
    this.#state = createHash('sha256').update(this.seed).digest().readUInt32LE(0);
  }

  /** Chance of its own for one part of a run, so that parts do not disturb each other's choices. */
  fork(name) {
    return new Random(`${this.seed}/${name}`);
  }

  /** 0 up to 1, by mulberry32. */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from `least` to `greatest`, both included. */
  int(least, greatest) {
    return least + Math.floor(this.next() * (greatest - least + 1));
  }

  chance(probability) {
    return this.next() < probability;
  }

  pick(list) {
    return list[this.int(0, list.length - 1)];
  }

  shuffled(list) {
    const left = [...list];
    return Array.from(list, () => left.splice(this.int(0, left.length - 1), 1)[0]);
  }

  letters(count) {
    let text = '';
    while (text.length < count) text += this.int(0, 36 ** 5).toString(36);
    return text.slice(0, count);
  }
}
