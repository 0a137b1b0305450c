/** The supervisor's end of a control connection: requests in, answers out, in any order. */
import { randomUUID } from 'node:crypto';
import { create, fromBinary } from '@bufbuild/protobuf';
import { LateSignal } from '../../core/lateSignal.js';
import { WelcomeSchema } from '../../gen/internal/grantty/internal/v1/connection_pb.js';
import {
  ReplySchema,
  type Request,
  RequestSchema,
} from '../../gen/internal/grantty/internal/v1/control_pb.js';
import type { Supervisor } from '../api.js';
import { answer, answerGet, type Result } from './answer.js';
import { encodeFailure } from './failureCodec.js';
import type { FrameSocket } from './frameSocket.js';
import { MAX_PENDING_REQUESTS, type SocketLog, unavailable, unsound } from './protocol.js';
import { RecordRevisions } from './recordMemory.js';

/** Why a request ends that nobody waits for any more. */
const CANCELLED = unavailable('the request was cancelled');

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
  const revisions = new RecordRevisions();
  /** Unanswered requests by id. */
  const running = new Map<number, LateSignal>();

  const reply = (id: number, result: Result): boolean =>
    frames.post(ReplySchema, create(ReplySchema, { id, result }));

  const run = async ({ id, call }: Request, over: LateSignal): Promise<void> => {
    try {
      if (call.case === 'get') {
        // By far the most frequent one.
        const answered = await answerGet(supervisor, call.value, revisions, id);
        if (answered instanceof Uint8Array) frames.postBytes(answered);
        else reply(id, answered);
        return;
      }
      for await (const result of answer(supervisor, call, over, scope)) {
        if (over.aborted) return;
        if (!reply(id, result)) await frames.drained();
      }
    } catch (error) {
      if (!over.aborted) reply(id, { case: 'failure', value: encodeFailure(error, log) });
    } finally {
      running.delete(id);
    }
  };

  frames.receive((body) => {
    const request = fromBinary(RequestSchema, body);
    const { id, call } = request;
    if (call.case === 'cancel') {
      running.get(id)?.abort(CANCELLED);
      return;
    }
    if (running.has(id)) throw unsound('an id of a request that is unanswered');
    if (running.size >= MAX_PENDING_REQUESTS) {
      const refusal = unavailable('the supervisor has too many requests');
      reply(id, { case: 'failure', value: encodeFailure(refusal, log) });
      return;
    }
    const over = new LateSignal();
    running.set(id, over);
    void run(request, over);
  });
  frames.send(WelcomeSchema, create(WelcomeSchema, { outcome: { case: 'control', value: {} } }));

  const failure = await frames.closed;
  const unanswered = running.size;
  for (const over of running.values()) over.abort(CANCELLED);
  await supervisor.fence([scope]);
  log.info({ err: failure, unanswered }, 'the server has gone');
}
