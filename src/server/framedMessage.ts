/**
 * Messages that have the prefix of their gRPC frame already: one frame serves many streams, and no
 * stream copies it. grpc-js would make one for each stream, by a copy into fresh memory.
 */
import type { ServerInterceptingCall, ServerInterceptor } from '@grpc/grpc-js';

/** Whether it is compressed, one byte; its length, four ("Length-Prefixed-Message", gRPC over HTTP/2). */
export const PREFIX_BYTES = 5;

export class FramedMessage {
  /** `frame`: room of `PREFIX_BYTES`, which is filled in here, and the encoded message. It must not change. */
  constructor(readonly frame: Buffer) {
    frame[0] = 0;
    frame.writeUInt32BE(this.byteLength, 1);
  }

  /** Of the message alone. */
  get byteLength(): number {
    return this.frame.length - PREFIX_BYTES;
  }
}

/**
 * Has streams take a `FramedMessage` for a message. It steps in where grpc-js turns a message into a
 * frame, in a private member of its calls, and nowhere else: what comes before and after is as ever.
 */
export const framedMessages: ServerInterceptor = (method, call) => {
  if (method.responseStream) {
    const serialize: unknown = Reflect.get(call, 'serializeMessage');
    if (typeof serialize !== 'function') throw new TypeError('grpc-js makes its frames elsewhere');
    Reflect.set(call, 'serializeMessage', (message: unknown) =>
      message instanceof FramedMessage ? message.frame : serialize.call(call, message),
    );
  }
  // Its type wants a call that wraps this one; it needs none.
  return call as ServerInterceptingCall;
};
