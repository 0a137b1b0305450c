/** A gRPC call written by hand in HTTP/2 frames, for headers that no client library would send. */
import {
  DATA,
  END_HEADERS,
  END_STREAM,
  frame,
  HEADERS,
  headerBlock,
  message,
  RawHttp2,
} from './rawHttp2.js';

/** Sends one empty message; disposing closes the connection. What is answered is not looked at. */
export async function rawCall(
  port: number,
  path: string,
  headers: readonly (readonly [name: string, value: string])[],
): Promise<AsyncDisposable> {
  const raw = await RawHttp2.open(port);
  raw.send(
    frame(HEADERS, END_HEADERS, 1, headerBlock(path, headers)),
    frame(DATA, END_STREAM, 1, message(Buffer.alloc(0))),
  );
  return raw;
}
