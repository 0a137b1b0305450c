/**
 * Room on the disk for the records that must be kept when there is none left: a file of zeros,
 * allocated beforehand, that lines are written over from its beginning.
 *
 * Hazard: a file system that writes elsewhere instead of over (btrfs and ZFS, compressing ones)
 * may refuse even this; docs/operations.md says where the trail should live.
 */
import type { FileHandle } from 'node:fs/promises';
import { openOrCreate } from '../store/files.js';

/** 16 MiB: some 20,000 stops, kills and revocations with their outcomes. */
export const RESERVE_BYTES = 16 * 1024 * 1024;

const CHUNK_BYTES = 1024 * 1024;

const NEWLINE = 0x0a;

export class Reserve {
  private constructor(
    private readonly handle: FileHandle,
    private readonly capacity: number,
    private filled: number,
  ) {}

  /**
   * Makes the file and takes its room, or finds what a server that ended on a full disk left.
   * @throws ENOSPC when there is no room for it to begin with
   */
  static async open(path: string, capacity = RESERVE_BYTES): Promise<Reserve> {
    const handle = await openOrCreate(path);
    try {
      const { size } = await handle.stat();
      const filled = await findEnd(handle, size);
      // Behind the last whole line: part of one that nobody was told is kept, or of a clearing.
      await clean(handle, filled, size);
      await zero(handle, size, capacity);
      await handle.sync();
      return new Reserve(handle, Math.max(size, capacity), filled);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Bytes of lines in it. */
  get used(): number {
    return this.filled;
  }

  /** Resolves when the lines are durable. One call at a time. @throws when it is used up */
  async append(bytes: Uint8Array): Promise<void> {
    if (this.filled + bytes.length > this.capacity) {
      throw new Error(`the audit reserve of ${this.capacity} bytes is used up`);
    }
    try {
      await writeAll(this.handle, bytes, this.filled);
      await this.handle.datasync();
    } catch (error) {
      await zero(this.handle, this.filled, this.filled + bytes.length).catch(() => undefined);
      throw error;
    }
    this.filled += bytes.length;
  }

  read(buffer: Buffer, offset: number, length: number, position: number) {
    const rest = Math.max(0, this.filled - position);
    return this.handle.read(buffer, offset, Math.min(length, rest), position);
  }

  /** Forgets the lines; the room stays taken. */
  async clear(): Promise<void> {
    await zero(this.handle, 0, this.filled);
    await this.handle.datasync();
    this.filled = 0;
  }

  close(): Promise<void> {
    return this.handle.close();
  }
}

/** Bytes of whole lines before the first zero. */
async function findEnd(handle: FileHandle, size: number): Promise<number> {
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, Math.max(1, size)));
  let end = 0;
  for (let position = 0; position < size; ) {
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, position);
    if (bytesRead === 0) break;
    const read = buffer.subarray(0, bytesRead);
    const firstZero = read.indexOf(0);
    const text = firstZero < 0 ? read : read.subarray(0, firstZero);
    const newline = text.lastIndexOf(NEWLINE);
    if (newline >= 0) end = position + newline + 1;
    if (firstZero >= 0) break;
    position += bytesRead;
  }
  return end;
}

/** Makes zeros of what is not. */
async function clean(handle: FileHandle, from: number, to: number): Promise<void> {
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  const zeros = Buffer.alloc(CHUNK_BYTES);
  for (let position = from; position < to; ) {
    const length = Math.min(CHUNK_BYTES, to - position);
    const { bytesRead } = await handle.read(buffer, 0, length, position);
    if (bytesRead === 0) return;
    if (!buffer.subarray(0, bytesRead).equals(zeros.subarray(0, bytesRead))) {
      await zero(handle, position, position + bytesRead);
    }
    position += bytesRead;
  }
}

/** Real zeros: a hole has no room of its own. */
async function zero(handle: FileHandle, from: number, to: number): Promise<void> {
  const zeros = Buffer.alloc(Math.min(CHUNK_BYTES, Math.max(0, to - from)));
  for (let position = from; position < to; position += zeros.length) {
    await writeAll(handle, zeros.subarray(0, Math.min(zeros.length, to - position)), position);
  }
}

async function writeAll(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}
