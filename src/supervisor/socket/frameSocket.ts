/** One connection of the supervisor's socket as messages both ways. */
import type { Socket } from 'node:net';
import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { sizeDelimitedEncode } from '@bufbuild/protobuf/wire';
import { putVarint, varintSize } from '../../core/varint.js';
import { type BodyMemory, FrameReader } from './frameReader.js';
import { MAX_MESSAGE_BYTES, unavailable, unsound } from './protocol.js';

/** Bytes of posted messages that wait for the end of the turn; what is more goes at once. */
const MAX_POSTED_BYTES = 64 * 1024;

/** Bytes of a message up to which putting it together costs less than a call with several parts. */
const COPIED_BYTES = 4096;

export class FrameSocket {
  /** Resolves when the connection is gone: with why, or with nothing after a regular end. */
  readonly closed: Promise<Error | undefined>;
  readonly #socket: Socket;
  readonly #reader = new FrameReader();
  #onBody: (body: Buffer) => void = () => {
    throw unsound('a message out of turn');
  };
  #failure: Error | undefined;
  #waitsForDrain: (() => void)[] = [];
  /** Posted, and not written yet. */
  #posted: Uint8Array[] = [];
  #postedBytes = 0;

  /** Owns `socket` from here on. */
  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => this.read(chunk));
    socket.on('drain', () => this.#drained());
    socket.on('error', (error) => {
      this.#failure ??= error;
    });
    socket.on('end', () => {
      if (this.#reader.incompleteBytes > 0) this.#failure ??= unsound('half a message');
    });
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        this.#drained();
        resolve(this.#failure);
      });
    });
  }

  /**
   * Who gets the bodies of messages from now on, and where they lie; without `memory` they are the
   * receiver's own. What it throws ends the connection.
   */
  receive(onBody: (body: Buffer) => void, memory?: BodyMemory): void {
    this.#onBody = onBody;
    if (memory) this.#reader.memory = memory;
  }

  /**
   * False when as much waits as should: a sender of much then waits for `drained`. Nothing happens
   * when the connection is gone.
   * @throws GranttyError when the message is above the bound; the connection lives on
   */
  send<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): boolean {
    if (!this.#socket.writable) return false;
    const bytes = encode(schema, message);
    this.#flush();
    return this.#socket.write(bytes);
  }

  /** As `send`, but all that is posted in one turn of the event loop goes out in one write. */
  post<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): boolean {
    return this.#socket.writable && this.postBytes(encode(schema, message));
  }

  /** As `post`, of a message that is encoded already, its size before it. It must not change. */
  postBytes(bytes: Uint8Array): boolean {
    if (!this.#socket.writable) return false;
    if (bytes.length > MAX_MESSAGE_BYTES) throw tooLarge(bytes.length);
    if (this.#posted.length === 0) setImmediate(() => this.#flush());
    this.#posted.push(bytes);
    this.#postedBytes += bytes.length;
    return this.#postedBytes <= MAX_POSTED_BYTES || this.#flush();
  }

  /** Bytes that were sent or posted and that the kernel has not taken. */
  get waitingBytes(): number {
    return this.#socket.writableLength + this.#postedBytes;
  }

  /**
   * As `send`, of a message that is encoded already. A large one is not copied and must not change
   * until `sent` is called: the kernel has it then. It is not called when the connection is gone
   * before. The kernel gets the parts in one call.
   */
  sendParts(parts: readonly Uint8Array[], sent?: () => void): boolean {
    const socket = this.#socket;
    if (!socket.writable) return false;
    const size = parts.reduce((sum, part) => sum + part.length, 0);
    if (size > MAX_MESSAGE_BYTES) throw tooLarge(size);
    const prefix = Buffer.allocUnsafe(varintSize(size));
    putVarint(prefix, 0, size);
    const all = [prefix, ...parts];
    this.#flush();
    const done = (error?: Error | null) => {
      if (!error) sent?.();
    };
    if (size <= COPIED_BYTES) return socket.write(Buffer.concat(all), done);
    socket.cork();
    let room = true;
    for (const part of all) room = socket.write(part, part === all.at(-1) ? done : undefined);
    socket.uncork();
    return room;
  }

  /** Resolves when the other end has read on, or the connection is gone. */
  async drained(): Promise<void> {
    if (!this.#socket.writableNeedDrain) return;
    await new Promise<void>((resolve) => {
      this.#waitsForDrain.push(resolve);
    });
  }

  /** The other end is held back, once the kernel's buffers are full. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Closes the connection when all that was sent is with the kernel. */
  close(): void {
    this.#flush();
    this.#socket.destroySoon();
  }

  /** Closes the connection at once. */
  destroy(reason?: Error): void {
    this.#failure ??= reason;
    this.#socket.destroy();
  }

  /** As `send`. */
  #flush(): boolean {
    const [first, ...others] = this.#posted;
    if (first === undefined || !this.#socket.writable) return false;
    const bytes = others.length === 0 ? first : Buffer.concat(this.#posted, this.#postedBytes);
    this.#posted = [];
    this.#postedBytes = 0;
    return this.#socket.write(bytes);
  }

  /** What has arrived, where the socket reads into a buffer and emits nothing. Copies it. */
  read(chunk: Uint8Array): void {
    try {
      this.#reader.push(chunk, (body) => {
        if (!this.#socket.destroyed) this.#onBody(body);
      });
    } catch (error) {
      this.destroy(error instanceof Error ? error : unsound('a message that cannot be read'));
    }
  }

  #drained(): void {
    for (const resolve of this.#waitsForDrain.splice(0)) resolve();
  }
}

/** @throws GranttyError when the message is above the bound */
function encode<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): Uint8Array {
  const bytes = sizeDelimitedEncode(schema, message);
  if (bytes.length <= MAX_MESSAGE_BYTES) return bytes;
  throw tooLarge(bytes.length);
}

function tooLarge(bytes: number): Error {
  return unavailable(`a message of ${bytes} bytes does not fit the supervisor's socket`);
}
