/** The other end of the supervisor's socket as somebody who keeps no protocol. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { create, fromBinary, type MessageInitShape } from '@bufbuild/protobuf';
import { sizeDelimitedEncode } from '@bufbuild/protobuf/wire';
import {
  HelloSchema,
  type Welcome,
  WelcomeSchema,
} from '../../../src/gen/internal/grantty/internal/v1/connection_pb.js';
import { FrameReader } from '../../../src/supervisor/socket/frameReader.js';
import { PROTOCOL_VERSION } from '../../../src/supervisor/socket/protocol.js';
import { stateDirId } from '../../support/socketRegistry.js';

type HelloInit = MessageInitShape<typeof HelloSchema>;

export interface RawPeer {
  readonly socket: Socket;
  /** Bodies of messages so far. */
  readonly bodies: Buffer[];
  /** Resolves when the supervisor has closed the connection. */
  readonly closed: Promise<unknown>;
  /** Resolves with the body of message `index`. */
  body(index: number): Promise<Buffer>;
}

export async function rawPeer(path: string): Promise<RawPeer> {
  const socket = connect(path);
  const reader = new FrameReader();
  const bodies: Buffer[] = [];
  const closed = once(socket, 'close');
  socket.on('error', () => {});
  socket.on('data', (chunk: Buffer) => {
    reader.push(chunk, (body) => bodies.push(Buffer.from(body)));
    socket.emit('body');
  });
  await once(socket, 'connect');
  return {
    socket,
    bodies,
    closed,
    async body(index) {
      for (;;) {
        const body = bodies[index];
        if (body) return body;
        await once(socket, 'body');
      }
    },
  };
}

export const control = { case: 'control', value: {} } as const;

/** A greeting as a client of the same version and state directory sends it, but for `fields`. */
export function hello(fields: HelloInit): Uint8Array {
  const init: HelloInit = { protocol: PROTOCOL_VERSION, stateDirId, purpose: control, ...fields };
  return sizeDelimitedEncode(HelloSchema, create(HelloSchema, init));
}

/** Greets and answers how the supervisor received it. */
export async function greet(peer: RawPeer, fields: HelloInit = {}): Promise<Welcome['outcome']> {
  peer.socket.write(hello(fields));
  return fromBinary(WelcomeSchema, await peer.body(0)).outcome;
}
