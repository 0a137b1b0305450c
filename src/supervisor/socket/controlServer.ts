/** The supervisor's end of a control connection: requests in, answers out, in any order. */
import { randomUUID } from 'node:crypto';
import { create, fromBinary } from '@bufbuild/protobuf';
import { WelcomeSchema } from '../../gen/internal/grantty/internal/v1/connection_pb.js';
import {
  ReplySchema,
  type Request,
  RequestSchema,
} from '../../gen/internal/grantty/internal/v1/control_pb.js';
import type { Supervisor } from '../api.js';
import { answer } from './answer.js';
import { encodeFailure } from './failureCodec.js';
import type { FrameSocket } from './frameSocket.js';
import { MAX_PENDING_REQUESTS, type SocketLog, unavailable, unsound } from './protocol.js';

/**
 * Resolves when the connection is closed. What was decided by a client that is gone has no effect
 * any more: requests that wait are aborted and writes that are queued are dropped.
 */
export async function serveControl(
  frames: FrameSocket,
  supervisor: Supervisor,
  log: SocketLog,
): Promise<void> {
  const scope = randomUUID();
  /** Unanswered requests by id. */
  const running = new Map<number, AbortController>();

  const run = async (request: Request, abort: AbortController): Promise<void> => {
    const { id } = request;
    try {
      for await (const result of answer(supervisor, request, abort.signal, scope)) {
        if (abort.signal.aborted) return;
        if (!frames.send(ReplySchema, create(ReplySchema, { id, result }))) await frames.drained();
      }
    } catch (error) {
      if (abort.signal.aborted) return;
      const value = encodeFailure(error, log);
      frames.send(ReplySchema, create(ReplySchema, { id, result: { case: 'failure', value } }));
    } finally {
      running.delete(id);
    }
  };

  frames.receive((body) => {
    const request = fromBinary(RequestSchema, body);
    const { id, call } = request;
    if (call.case === 'cancel') {
      running.get(id)?.abort();
      return;
    }
    if (running.has(id)) throw unsound('an id of a request that is unanswered');
    if (running.size >= MAX_PENDING_REQUESTS) {
      const value = encodeFailure(unavailable('the supervisor has too many requests'), log);
      frames.send(ReplySchema, create(ReplySchema, { id, result: { case: 'failure', value } }));
      return;
    }
    const abort = new AbortController();
    running.set(id, abort);
    void run(request, abort);
  });
  frames.send(WelcomeSchema, create(WelcomeSchema, { outcome: { case: 'control', value: {} } }));

  const failure = await frames.closed;
  const unanswered = running.size;
  for (const abort of running.values()) abort.abort();
  await supervisor.fence([scope]);
  log.info({ err: failure, unanswered }, 'the server has gone');
}
