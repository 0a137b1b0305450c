/**
 * A file of JSON lines that only grows, of which each line is durable before its writer is told. Room
 * is taken ahead: behind the last line the file holds zeros that lines are written over, so that some
 * hundred more can be kept on a disk that is full.
 */
import type { FileHandle } from 'node:fs/promises';
import { openOrCreate, readRegular, writeFileAtomic } from '../store/files.js';

/** Bytes of zeros that are kept behind the last line, and that are added at a time. */
const MIN_ROOM_BYTES = 64 * 1024;
const CHUNK_BYTES = 128 * 1024;

/** Bytes of the whole file; what outgrows it was not compacted for a long time. */
const MAX_FILE_BYTES = 64 * 1024 * 1024;

const NEWLINE = 0x0a;

/** One writer at a time; the caller holds the lock on the directory. */
export class DurableLines implements AsyncDisposable {
  #handle: FileHandle;
  #end: number;
  #size: number;
  #busy: Promise<unknown> = Promise.resolve();

  private constructor(
    private readonly path: string,
    handle: FileHandle,
    end: number,
    size: number,
  ) {
    this.#handle = handle;
    this.#end = end;
    this.#size = size;
  }

  /**
   * Opens the file or makes it, and gives the lines that are in it. What a crash left behind the last
   * whole line was told to nobody, and is wiped.
   */
  static async open(path: string): Promise<{ lines: string[]; file: DurableLines }> {
    const handle = await openOrCreate(path);
    try {
      const bytes = await readRegular(path, MAX_FILE_BYTES);
      const firstZero = bytes.indexOf(0);
      const text = firstZero < 0 ? bytes : bytes.subarray(0, firstZero);
      const end = text.lastIndexOf(NEWLINE) + 1;
      const file = new DurableLines(path, handle, end, bytes.length);
      await wipe(handle, end, bytes.length);
      await file.#makeRoom(0);
      await handle.sync();
      const lines = text.subarray(0, end).toString('utf8').split('\n').slice(0, -1);
      return { lines, file };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Resolves when the lines are durable. On failure none of them will be read again. */
  append(lines: readonly string[]): Promise<void> {
    return this.#alone(async () => {
      const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
      try {
        await this.#makeRoom(bytes.length);
        await writeAll(this.#handle, bytes, this.#end);
        await this.#handle.datasync();
      } catch (error) {
        await wipe(this.#handle, this.#end, this.#size).catch(() => undefined);
        throw error;
      }
      this.#end += bytes.length;
    });
  }

  /** Puts these lines in the place of all that are there, or leaves the file as it was. */
  replace(lines: readonly string[]): Promise<void> {
    return this.#alone(async () => {
      const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
      await writeFileAtomic(this.path, Buffer.concat([bytes, Buffer.alloc(CHUNK_BYTES)]));
      const before = this.#handle;
      this.#handle = await openOrCreate(this.path);
      this.#end = bytes.length;
      this.#size = bytes.length + CHUNK_BYTES;
      await before.close();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#busy.catch(() => undefined);
    await this.#handle.close();
  }

  /** Fails only when not even these bytes find room. */
  async #makeRoom(bytes: number): Promise<void> {
    if (this.#size - this.#end - bytes >= MIN_ROOM_BYTES) return;
    const size = this.#end + bytes + CHUNK_BYTES;
    try {
      await writeAll(this.#handle, Buffer.alloc(size - this.#size), this.#size);
      this.#size = size;
    } catch (error) {
      const { size: found } = await this.#handle.stat();
      this.#size = Math.max(this.#size, found);
      if (this.#size - this.#end < bytes) throw error;
    }
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#busy.then(work, work);
    this.#busy = done;
    return done;
  }
}

/** Makes zeros of what is not: a write that was cut off may have left holes in what it wrote. */
async function wipe(handle: FileHandle, from: number, to: number): Promise<void> {
  if (to > from) await writeAll(handle, Buffer.alloc(to - from), from);
}

async function writeAll(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}
