/** One file of the trail that is appended to: each append whole or not at all. */
import { writeSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { openOrCreate } from '../store/files.js';

export interface AuditFile {
  readonly size: number;
  /** One call at a time. When it rejects, the file is as it was before. */
  append(bytes: Uint8Array): Promise<void>;
  /** Resolves when all that was appended before the call is durable. */
  sync(): Promise<void>;
  read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ bytesRead: number }>;
  /** Drops what follows `size`, durably. */
  truncate(size: number): Promise<void>;
  close(): Promise<void>;
}

export type OpenAuditFile = (path: string) => Promise<AuditFile>;

/**
 * Bytes up to which an append is done at once, unless a sync is under way: copying them to the page
 * cache takes less than the way to a thread and back, for which every decision would wait. Beside a
 * sync the kernel may hold a write back, and a thread waits for it then.
 */
const AT_ONCE_BYTES = 64 * 1024;

/** Bytes that are written anew at once. */
const REWRITE_BYTES = 1024 * 1024;

/** Opens a file, or makes it. */
export const openAuditFile: OpenAuditFile = async (path) => {
  const handle = await openOrCreate(path);
  try {
    return new HeldFile(handle, (await handle.stat()).size);
  } catch (error) {
    await handle.close();
    throw error;
  }
};

class HeldFile implements AuditFile {
  /** Behind `size` there may be a part of an append that failed. */
  #untidy = false;
  /** Bytes known to be durable. */
  #synced: number;
  #syncFailed = false;
  #syncing = false;

  constructor(
    private readonly handle: FileHandle,
    private written: number,
  ) {
    this.#synced = written;
  }

  get size(): number {
    return this.written;
  }

  async append(bytes: Uint8Array): Promise<void> {
    if (this.#untidy) await this.#tidy();
    this.#untidy = true;
    try {
      await this.#writeAll(bytes, this.written);
    } catch (error) {
      await this.#tidy().catch(() => undefined);
      throw error;
    }
    this.#untidy = false;
    this.written += bytes.length;
  }

  async sync(): Promise<void> {
    const through = this.written;
    // After a failed fsync the kernel may take what it could not write for clean (fsync(2), EIO).
    if (this.#syncFailed) await this.#rewrite(this.#synced, through);
    this.#syncFailed = true;
    this.#syncing = true;
    try {
      await this.handle.datasync();
    } finally {
      this.#syncing = false;
    }
    this.#syncFailed = false;
    this.#synced = through;
  }

  read(buffer: Buffer, offset: number, length: number, position: number) {
    return this.handle.read(buffer, offset, length, position);
  }

  async truncate(size: number): Promise<void> {
    await this.handle.truncate(size);
    this.written = size;
    await this.sync();
  }

  close(): Promise<void> {
    return this.handle.close();
  }

  async #writeAll(bytes: Uint8Array, position: number): Promise<void> {
    const { handle } = this;
    const atOnce = !this.#syncing && bytes.length <= AT_ONCE_BYTES;
    for (let done = 0; done < bytes.length; ) {
      const rest = [done, bytes.length - done, position + done] as const;
      done += atOnce
        ? writeSync(handle.fd, bytes, ...rest)
        : (await handle.write(bytes, ...rest)).bytesWritten;
    }
  }

  async #tidy(): Promise<void> {
    await this.handle.truncate(this.written);
    this.#untidy = false;
  }

  async #rewrite(from: number, to: number): Promise<void> {
    const buffer = Buffer.allocUnsafe(Math.min(REWRITE_BYTES, Math.max(1, to - from)));
    for (let position = from; position < to; ) {
      const length = Math.min(buffer.length, to - position);
      const { bytesRead } = await this.handle.read(buffer, 0, length, position);
      if (bytesRead === 0) throw new Error('the audit file is shorter than what was written');
      await this.#writeAll(buffer.subarray(0, bytesRead), position);
      position += bytesRead;
    }
  }
}
