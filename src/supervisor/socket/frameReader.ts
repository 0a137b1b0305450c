/** Cuts a stream of bytes into messages: each a size as a varint, then that many bytes. */
import { sizeDelimitedPeek } from '@bufbuild/protobuf/wire';
import { MAX_MESSAGE_BYTES, unsound } from './protocol.js';

const NOTHING = Buffer.alloc(0);

/**
 * Gives the memory for one body of so many bytes. It is asked when the size is known, and not again
 * before that body was handed over.
 */
export type BodyMemory = (size: number) => Buffer;

export class FrameReader {
  /** A size that is not complete yet, or the size of the message that is not. */
  #head: Uint8Array = NOTHING;
  #body: Buffer | undefined;
  /** Bytes of the body that are there. */
  #filled = 0;

  /** Where bodies go from now on; as it is, each has memory of its own. */
  memory: BodyMemory = (size) => Buffer.allocUnsafe(size);

  /** Bytes of a message that is not complete. */
  get incompleteBytes(): number {
    return this.#head.length + this.#filled;
  }

  /**
   * Calls `onBody` for each message that `chunk` completes. A body is copied once, into
   * `memory`: `chunk` may be read into again.
   * @throws GranttyError when a size is above the bound, as soon as it is known
   */
  push(chunk: Uint8Array, onBody: (body: Buffer) => void): void {
    for (let rest = chunk; rest.length > 0; ) {
      rest = this.#body === undefined ? this.#begin(rest) : rest;
      const body = this.#body;
      if (body === undefined) return;
      const part = rest.subarray(0, body.length - this.#filled);
      body.set(part, this.#filled);
      this.#filled += part.length;
      rest = rest.subarray(part.length);
      if (this.#filled < body.length) return;
      this.#body = undefined;
      this.#filled = 0;
      this.#head = NOTHING;
      onBody(body);
    }
  }

  /** Reads the size at the beginning of `bytes`; answers what follows it. */
  #begin(bytes: Uint8Array): Uint8Array {
    const all = this.#head.length > 0 ? Buffer.concat([this.#head, bytes]) : bytes;
    const { size, offset } = sizeDelimitedPeek(all);
    this.#head = Buffer.from(all.subarray(0, offset ?? all.length));
    if (size === null) return NOTHING;
    if (size > MAX_MESSAGE_BYTES) throw unsound(`a message of ${size} bytes`);
    this.#body = this.memory(size);
    return all.subarray(offset);
  }
}
