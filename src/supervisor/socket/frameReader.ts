/** Cuts a stream of bytes into messages: each a size as a varint, then that many bytes. */
import { sizeDelimitedPeek } from '@bufbuild/protobuf/wire';
import { MAX_MESSAGE_BYTES, unsound } from './protocol.js';

export class FrameReader {
  /** Parts of a message that is not complete yet. */
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  /** Bytes that the held message has with its size; 0 when not even the size is complete. */
  #wanted = 0;

  /** Bytes of a message that is not complete. */
  get incompleteBytes(): number {
    return this.#heldBytes;
  }

  /**
   * Calls `onBody` for each message that `chunk` completes. A body is a view of `chunk`, or of one
   * copy where the message came in parts: it stays valid as long as `chunk` is not written to.
   * @throws GranttyError when a size is above the bound, as soon as it is known
   */
  push(chunk: Uint8Array, onBody: (body: Uint8Array) => void): void {
    let bytes = chunk;
    if (this.#heldBytes > 0) {
      this.#hold(chunk);
      if (this.#heldBytes < this.#wanted) return;
      bytes = Buffer.concat(this.#held, this.#heldBytes);
      this.#held = [];
      this.#heldBytes = 0;
    }
    this.#wanted = 0;
    let at = 0;
    while (at < bytes.length) {
      const { size, offset } = sizeDelimitedPeek(bytes.subarray(at));
      if (size === null) break;
      if (size > MAX_MESSAGE_BYTES) throw unsound(`a message of ${size} bytes`);
      if (bytes.length - at < offset + size) {
        this.#wanted = offset + size;
        break;
      }
      const begin = at + offset;
      at = begin + size;
      onBody(bytes.subarray(begin, at));
    }
    if (at < bytes.length) this.#hold(bytes.subarray(at));
  }

  #hold(part: Uint8Array): void {
    this.#held.push(part);
    this.#heldBytes += part.length;
  }
}
