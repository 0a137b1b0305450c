/** One large read of a log's file, in a buffer that all readers share. */
import type { FileHandle } from 'node:fs/promises';
import { NEWLINE } from '../eventCodec.js';
import { giveBack, takeBlockBuffer } from './lineBuffers.js';

/** Its bytes are valid until it is disposed of, which must not wait for a consumer. */
export class LineBlock implements Disposable {
  #buffer: Buffer | undefined;

  private constructor(
    buffer: Buffer,
    /** All that was read. */
    readonly bytes: Buffer,
    /** Whether the file may go on behind it. */
    readonly isFull: boolean,
  ) {
    this.#buffer = buffer;
  }

  /** Read meanwhile, by a thread, as soon as there is a buffer. */
  static async read(handle: FileHandle, position: number): Promise<LineBlock> {
    const taken = takeBlockBuffer();
    // Not awaited where there is one: the read has to be under way when this returns.
    const buffer = taken instanceof Promise ? await taken : taken;
    try {
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, position);
      return new LineBlock(buffer, buffer.subarray(0, bytesRead), bytesRead === buffer.length);
    } catch (error) {
      giveBack(buffer);
      throw error;
    }
  }

  /** Bytes of the complete lines in it, before any is looked at. */
  get lineBytes(): number {
    return this.bytes.lastIndexOf(NEWLINE) + 1;
  }

  [Symbol.dispose](): void {
    if (this.#buffer) giveBack(this.#buffer);
    this.#buffer = undefined;
  }
}
