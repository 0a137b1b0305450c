/** The master side of one terminal: every byte read once, by the event loop and then to the end. */
import { closeSync, readSync, writeSync } from 'node:fs';
import type { ConnectOpts, SocketConstructorOpts } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { ReadStream } from 'node:tty';
import { errorCode, GranttyError } from '../core/errors.js';
import type { TerminalSize } from '../core/event.js';
import { resizePty } from './nativePty.js';

/**
 * More than the kernel holds of one terminal's output (up to 23 KiB seen: the line discipline's
 * buffer and a flip buffer that pty.c limits to 8 KiB and a page or two), so that a first read of this much after
 * the child's exit has all of its output even while others go on writing. Also the most that is read
 * in one turn of the event loop.
 */
const MOST_AT_ONCE_BYTES = 256 * 1024;
const ONE_READ = 1;

/** When somebody else still has the terminal open: reading ends after this much silence … */
const SILENCE_MS = 250;
/** … or after this time in all. */
const LONGEST_DRAIN_MS = 2_000;
/** Milliseconds between two looks. A read that finds nothing throws, so not too often. */
const DRAIN_INTERVAL_MS = 10;

/**
 * More than one read of a terminal brings: what the line discipline holds (4,095 bytes, n_tty.c) and
 * what may come in while it is copied. A read that fills its buffer the event loop (libuv) follows by
 * another at once, up to 32 of them, and a key typed into another terminal waits for them all.
 */
const READ_BYTES = 16 * 1024;

/** Every terminal reads into it: a read and the use of what it brought are one synchronous step. */
const sharedBuffer = Buffer.allocUnsafeSlow(READ_BYTES);

/**
 * Owns both descriptors. The slave is held open because the event loop (libuv) ends a stream on a
 * hang-up that follows a partial read, and what the kernel still has is lost; while somebody has
 * the slave open there is no hang-up. Only after the child's exit, when nothing is read by the event
 * loop any more, it is closed, and reading until EIO shows that nothing is left.
 *
 * A process that hangs up its own terminal (vhangup(2), root only) ends its output by that.
 */
export class PtyMaster {
  readonly #socket: ReadStream;
  readonly #onData: (chunk: Uint8Array) => void;
  #slave: number | undefined;
  #paused = false;
  #draining = false;
  /** The kernel has said that no more can come. */
  #hungUp = false;

  constructor(
    readonly fd: number,
    slave: number,
    onData: (chunk: Uint8Array) => void,
  ) {
    this.#slave = slave;
    this.#onData = onData;
    // The types do not say that a stream over a descriptor takes `onread` too; Node.js passes it on.
    const options: SocketConstructorOpts & ConnectOpts = {
      // Else the descriptor is closed when the stream ends, before the rest is read.
      allowHalfOpen: true,
      onread: {
        buffer: sharedBuffer,
        callback: (bytes, buffer) => {
          onData(buffer.subarray(0, bytes));
          // The stream forgets a pause that comes in the same turn as a resume.
          return !this.#paused;
        },
      },
    };
    this.#socket = new ReadStream(fd, options);
    this.#socket.on('end', () => this.#hangUp());
    // EIO; the stream has closed the descriptor.
    this.#socket.on('error', () => this.#hangUp());
    this.#socket.resume();
  }

  pause(): void {
    this.#paused = true;
    this.#socket.pause();
  }

  resume(): void {
    this.#paused = false;
    if (!this.#draining) this.#socket.resume();
  }

  /**
   * Reads what the ended process has left, then until the kernel says that all is read (true) or,
   * while another process has the terminal open, until it falls silent or its time is over (false).
   */
  async drain(): Promise<boolean> {
    this.#draining = true;
    this.#socket.pause();
    this.#readAvailable(MOST_AT_ONCE_BYTES);
    this.#closeSlave();
    // Also while paused: when nobody else has the terminal, one read says that nothing is left.
    this.#readAvailable(ONE_READ);
    const begin = performance.now();
    let lastOutput = begin;
    while (!this.#hungUp && !this.#closed) {
      await setTimeout(DRAIN_INTERVAL_MS);
      const found = this.#paused ? undefined : this.#readAvailable(MOST_AT_ONCE_BYTES);
      const now = performance.now();
      if (found !== 0) lastOutput = now;
      if (now - lastOutput >= SILENCE_MS || now - begin >= LONGEST_DRAIN_MS) break;
    }
    return this.#hungUp;
  }

  /** Bytes that the line discipline took of `data` from `offset` on. @throws EAGAIN, EIO, TERMINAL_EXITED */
  write(data: Uint8Array, offset: number): number {
    this.#checkOpen();
    return writeSync(this.fd, data, offset);
  }

  /** @throws TERMINAL_EXITED */
  resize(size: TerminalSize): void {
    this.#checkOpen();
    resizePty(this.fd, size);
  }

  close(): void {
    this.#closeSlave();
    this.#socket.destroy();
  }

  /** The number may be another file's by now. */
  get #closed(): boolean {
    return this.#socket.destroyed;
  }

  #checkOpen(): void {
    if (this.#closed) throw new GranttyError('TERMINAL_EXITED', 'the terminal has been hung up');
  }

  #hangUp(): void {
    this.#readAvailable(Number.POSITIVE_INFINITY);
    this.#hungUp = true;
    this.close();
  }

  /** Reads until nothing is there, or `limit` is reached; answers the bytes read. */
  #readAvailable(limit: number): number {
    let total = 0;
    while (total < limit && !this.#closed && !this.#hungUp) {
      const bytes = this.#read();
      if (bytes === 0) break;
      total += bytes;
      this.#onData(sharedBuffer.subarray(0, bytes));
    }
    return total;
  }

  /** 0 when there is nothing now, or never more. A read flushes what is on its way (n_tty.c). */
  #read(): number {
    try {
      const bytes = readSync(this.fd, sharedBuffer);
      this.#hungUp ||= bytes === 0;
      return bytes;
    } catch (error) {
      this.#hungUp ||= errorCode(error) !== 'EAGAIN';
      return 0;
    }
  }

  #closeSlave(): void {
    if (this.#slave === undefined) return;
    closeSync(this.#slave);
    this.#slave = undefined;
  }
}
