/** A gRPC call written by hand in HTTP/2 frames, for headers that no client library would send. */
import { once } from 'node:events';
import { createConnection } from 'node:net';

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
const DATA = 0;
const HEADERS = 1;
const SETTINGS = 4;
const END_STREAM = 0x1;
const END_HEADERS = 0x4;

/** Sends one empty message; disposing closes the connection. What is answered is not looked at. */
export async function rawCall(
  port: number,
  path: string,
  headers: readonly (readonly [name: string, value: string])[],
): Promise<AsyncDisposable> {
  const socket = createConnection({ host: '127.0.0.1', port });
  await once(socket, 'connect');
  const block = [
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', path],
    [':authority', 'localhost'],
    ['content-type', 'application/grpc'],
    ['te', 'trailers'],
    ...headers,
  ].flatMap(([name = '', value = '']) => [Buffer.from([0]), text(name), text(value)]);
  socket.write(PREFACE);
  socket.write(frame(SETTINGS, 0, 0, Buffer.alloc(0)));
  socket.write(frame(HEADERS, END_HEADERS, 1, Buffer.concat(block)));
  socket.write(frame(DATA, END_STREAM, 1, Buffer.alloc(5)));
  socket.resume();
  return {
    async [Symbol.asyncDispose]() {
      socket.destroy();
      await once(socket, 'close');
    },
  };
}

/** RFC 9113, 4.1. */
function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const header = Buffer.alloc(9);
  header.writeUIntBE(payload.length, 0, 3);
  header.writeUInt8(type, 3);
  header.writeUInt8(flags, 4);
  header.writeUInt32BE(stream, 5);
  return Buffer.concat([header, payload]);
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
