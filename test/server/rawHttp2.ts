/** HTTP/2 written by hand, frame by frame: for peers that no library would be. */
import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';

export const DATA = 0;
export const HEADERS = 1;
export const PRIORITY = 2;
export const RST_STREAM = 3;
export const SETTINGS = 4;
export const PING = 6;
export const GOAWAY = 7;
export const WINDOW_UPDATE = 8;
export const CONTINUATION = 9;
export const END_STREAM = 0x1;
export const ACK = 0x1;
export const END_HEADERS = 0x4;

/** RFC 9113, 7. */
export const errorNames: Readonly<Record<number, string>> = {
  0: 'NO_ERROR',
  1: 'PROTOCOL_ERROR',
  2: 'INTERNAL_ERROR',
  3: 'FLOW_CONTROL_ERROR',
  5: 'STREAM_CLOSED',
  6: 'FRAME_SIZE_ERROR',
  7: 'REFUSED_STREAM',
  8: 'CANCEL',
  9: 'COMPRESSION_ERROR',
  11: 'ENHANCE_YOUR_CALM',
};

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** RFC 9113, 4.1. */
export function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Buffer = Buffer.alloc(0),
): Buffer {
  const header = Buffer.alloc(9);
  header.writeUIntBE(payload.length, 0, 3);
  header.writeUInt8(type, 3);
  header.writeUInt8(flags, 4);
  header.writeUInt32BE(stream, 5);
  return Buffer.concat([header, payload]);
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** The fields of a call, each a literal that is not indexed (RFC 7541, 6.2.2). */
export function headerBlock(
  path: string,
  headers: readonly (readonly [name: string, value: string])[] = [],
): Buffer {
  return Buffer.concat(
    [
      [':method', 'POST'],
      [':scheme', 'http'],
      [':path', path],
      [':authority', 'localhost'],
      ['content-type', 'application/grpc'],
      ['te', 'trailers'],
      ...headers,
    ].flatMap(([name = '', value = '']) => [Buffer.from([0]), text(name), text(value)]),
  );
}

/** A gRPC message: flag, length, bytes; `length` may lie. */
export function message(bytes: Buffer, compressed = 0, length = bytes.length): Buffer {
  return Buffer.concat([Buffer.from([compressed]), uint32(length), bytes]);
}

/** A string of RFC 7541, 5.2, without Huffman code; its length as in 5.1 with a prefix of 7 bits. */
function text(value: string): Buffer {
  const length: number[] = [];
  let rest = value.length;
  if (rest < 0x7f) length.push(rest);
  else {
    length.push(0x7f);
    for (rest -= 0x7f; rest >= 0x80; rest >>= 7) length.push((rest & 0x7f) | 0x80);
    length.push(rest);
  }
  return Buffer.concat([Buffer.from(length), Buffer.from(value, 'latin1')]);
}

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

/** One connection; disposing closes it. */
export class RawHttp2 implements AsyncDisposable {
  readonly frames: Frame[] = [];
  closed = false;
  #rest: Buffer = Buffer.alloc(0);
  #wake = () => {};

  private constructor(readonly socket: Socket) {
    socket.on('data', (chunk) => this.#take(chunk));
    socket.on('error', () => {});
    socket.on('close', () => {
      this.closed = true;
      this.#wake();
    });
  }

  /** Preface and settings have been sent. */
  static async open(
    socket: Socket | number,
    settings: Buffer = Buffer.alloc(0),
  ): Promise<RawHttp2> {
    const connection =
      typeof socket === 'number' ? createConnection({ host: '127.0.0.1', port: socket }) : socket;
    if (typeof socket === 'number') await once(connection, 'connect');
    const raw = new RawHttp2(connection);
    connection.write(PREFACE);
    raw.send(frame(SETTINGS, 0, 0, settings));
    return raw;
  }

  /** False: the kernel takes no more for now. */
  send(...frames: readonly Buffer[]): boolean {
    return this.socket.destroyed || this.socket.write(Buffer.concat(frames));
  }

  /** Resolves when what was sent has left, or the connection is closed. */
  async drained(): Promise<void> {
    while (!this.closed && this.socket.writableLength > 0) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Waits for a frame that is `wanted`; undefined when the connection is closed before. */
  async until(wanted: (frame: Frame) => boolean): Promise<Frame | undefined> {
    for (;;) {
      const found = this.frames.find(wanted);
      if (found || this.closed) return found;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** The code of the connection error that it ends with; `closed` where it goes without one. */
  async end(): Promise<string> {
    const isError = ({ type, payload }: Frame) => type === GOAWAY && payload.readUInt32BE(4) !== 0;
    const found = await this.until(isError);
    return found ? (errorNames[found.payload.readUInt32BE(4)] ?? 'unknown') : 'closed';
  }

  /** Whether the connection is to be given up: it is closed, or has a GOAWAY with an error. */
  get over(): boolean {
    return (
      this.closed ||
      this.frames.some(({ type, payload }) => type === GOAWAY && payload.readUInt32BE(4) !== 0)
    );
  }

  /** The code with which the stream was reset; undefined when the connection ended instead. */
  async reset(stream: number): Promise<string | undefined> {
    const found = await this.until((one) => one.type === RST_STREAM && one.stream === stream);
    return found && (errorNames[found.payload.readUInt32BE(0)] ?? 'unknown');
  }

  #take(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= 9) {
      const end = 9 + this.#rest.readUIntBE(0, 3);
      if (this.#rest.length < end) break;
      this.frames.push({
        type: this.#rest.readUInt8(3),
        flags: this.#rest.readUInt8(4),
        stream: this.#rest.readUInt32BE(5),
        payload: this.#rest.subarray(9, end),
      });
      this.#rest = this.#rest.subarray(end);
    }
    this.#wake();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.destroy();
    await this.until(() => false);
  }
}
