/** Opens a connection to the supervisor for one purpose. */
import { connect } from 'node:net';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { errorCode, GranttyError } from '../../core/errors.js';
import {
  HelloSchema,
  type Welcome,
  WelcomeSchema,
} from '../../gen/internal/grantty/internal/v1/connection_pb.js';
import { decodeFailure } from './failureCodec.js';
import { FrameSocket } from './frameSocket.js';
import { firstMessage } from './handshake.js';
import { HANDSHAKE_MS, PROTOCOL_VERSION, unavailable, unsound } from './protocol.js';
import { SupervisorRefusal } from './refusal.js';
import { checkSocketPath } from './socketPath.js';

export interface Address {
  readonly path: string;
  readonly stateDirId: string;
}

type Purpose = NonNullable<MessageInitShape<typeof HelloSchema>['purpose']>;
type Outcome = Welcome['outcome'];
type Accepted<Case extends Outcome['case']> = Extract<Outcome, { case: Case }>['value'];

/**
 * Resolves with what `accept` makes of the connection. It runs before any later message is looked
 * at, so that it can install who receives those.
 * @throws SUPERVISOR_UNAVAILABLE when nobody answers, FIELD_INVALID for an unsafe path, and what the
 * supervisor refused the connection with
 */
export async function dial<Case extends 'control' | 'attached' | 'opened', T>(
  address: Address,
  purpose: Purpose,
  expected: Case,
  accept: (welcome: Accepted<Case>, frames: FrameSocket) => T,
): Promise<T> {
  const { path, stateDirId } = address;
  await checkSocketPath(path);
  const frames = await connected(path);
  frames.send(
    HelloSchema,
    create(HelloSchema, { protocol: PROTOCOL_VERSION, stateDirId, purpose }),
  );
  try {
    return await firstMessage(frames, WelcomeSchema, HANDSHAKE_MS, ({ outcome }) => {
      if (outcome.case === 'refused') throw new SupervisorRefusal(decodeFailure(outcome.value));
      if (outcome.case !== expected) throw unsound('an unexpected greeting');
      return accept(outcome.value as Accepted<Case>, frames);
    });
  } catch (error) {
    if (error instanceof GranttyError) throw error;
    throw unavailable(`the supervisor at ${path} broke the connection off`, error);
  }
}

/** Every connection reads into it: a read and the use of what it brought are one synchronous step. */
const sharedBuffer = Buffer.allocUnsafeSlow(256 * 1024);

function connected(path: string): Promise<FrameSocket> {
  return new Promise((resolve, reject) => {
    let frames: FrameSocket | undefined;
    const onread = {
      buffer: sharedBuffer,
      callback: (bytes: number, buffer: Uint8Array) => {
        frames?.read(buffer.subarray(0, bytes));
        return true;
      },
    };
    const socket = connect({ path, onread });
    const failed = (error: Error) => {
      const absent = ['ENOENT', 'ECONNREFUSED'].includes(errorCode(error) ?? '');
      const why = absent ? 'no supervisor listens' : 'the supervisor cannot be reached';
      reject(unavailable(`${why} at ${path}; is it running?`, error));
    };
    socket.once('error', failed);
    socket.once('connect', () => {
      socket.off('error', failed);
      frames = new FrameSocket(socket);
      resolve(frames);
    });
  });
}
