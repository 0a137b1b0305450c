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
import { decodeGet } from './getCodec.js';
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
  /** Those among the unanswered that ask for a terminal; they are in no table, which all of them would pass through. */
  let gets = 0;

  const reply = (id: number, result: Result): boolean =>
    frames.post(ReplySchema, create(ReplySchema, { id, result }));

  /** By far the most frequent one. There is nothing in it to abort. */
  const get = async (id: number, asked: Parameters<typeof answerGet>[1]): Promise<void> => {
    gets += 1;
    try {
      const answered = await answerGet(supervisor, asked, revisions, id);
      if (answered instanceof Uint8Array) frames.postBytes(answered);
      else reply(id, answered);
    } catch (error) {
      reply(id, { case: 'failure', value: encodeFailure(error, log) });
    } finally {
      gets -= 1;
    }
  };

  const run = async ({ id, call }: Request, over: LateSignal): Promise<void> => {
    try {
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

  /** Whether the request has been refused. @throws when its id is one that waits */
  const isRefused = (id: number): boolean => {
    if (running.has(id)) throw unsound('an id of a request that is unanswered');
    if (running.size + gets < MAX_PENDING_REQUESTS) return false;
    const refusal = unavailable('the supervisor has too many requests');
    reply(id, { case: 'failure', value: encodeFailure(refusal, log) });
    return true;
  };

  frames.receive((body) => {
    const asked = decodeGet(body);
    if (asked !== undefined) {
      if (!isRefused(asked.id)) void get(asked.id, asked);
      return;
    }
    const request = fromBinary(RequestSchema, body);
    const { id, call } = request;
    if (call.case === 'cancel') {
      running.get(id)?.abort(CANCELLED);
      return;
    }
    if (isRefused(id)) return;
    if (call.case === 'get') {
      void get(id, call.value);
      return;
    }
    const over = new LateSignal();
    running.set(id, over);
    void run(request, over);
  });
  frames.send(WelcomeSchema, create(WelcomeSchema, { outcome: { case: 'control', value: {} } }));

  const failure = await frames.closed;
  const unanswered = running.size + gets;
  for (const over of running.values()) over.abort(CANCELLED);
  await supervisor.fence([scope]);
  log.info({ err: failure, unanswered }, 'the server has gone');
}
