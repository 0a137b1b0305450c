/** Send, ReadSend and CancelSend: one exclusive send at a time, read by anybody who may. */
import { fieldInvalid } from '../core/errors.js';
import { MAX_INPUT_FRAME_BYTES } from '../core/limits.js';
import { signalsRaisedBy } from '../core/signals.js';
import {
  type SendRequest,
  SendRequestSchema,
  type SessionService,
} from '../gen/public/grantty/v1/session_service_pb.js';
import type { LeaseSource } from '../session/leaseSource.js';
import { DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS } from '../session/readiness.js';
import { ENTER } from '../session/sendInput.js';
import type { ServerContext } from './context.js';
import { onRecord } from './eventStream.js';
import { parseCount } from './fields.js';
import type { Permit } from './gate.js';
import type { Handlers } from './grpc.js';
import { callerOf, perform, stored } from './perform.js';
import { storedTarget } from './refs.js';
import { requestMark } from './requestMark.js';
import type { SessionSend } from './sessionSend.js';
import { noSuchSend, serveSend } from './sessionStream.js';
import { Standing } from './standing.js';
import { inMilliseconds } from './times.js';

type Calls = Pick<Required<Handlers<typeof SessionService>>, 'send' | 'readSend' | 'cancelSend'>;

export function sessionSendCalls(context: ServerContext): Calls {
  const { gate, streams, sessionBook } = context;
  return {
    async send(request, call, out) {
      const target = storedTarget(request.terminal);
      const { input, submit } = inputOf(request);
      const read = { action: 'terminal.read', target } as const;
      const ask = {
        action: 'terminal.write',
        also: ['terminal.read'],
        target,
        signalBytes: signalsRaisedBy(input),
        inputBytes: input.length,
      } as const;
      const standing = await Standing.open(gate, callerOf(call, 'open'), ask, read);
      await onRecord(context, standing.permit, out, async () => {
        const { permit } = standing;
        const timeoutMs = checkSend(request);
        const mark = requestMark(permit, 'Send', SendRequestSchema, request);
        using stream = streams.open(permit.token, call);
        const session = await sessionBook.find(permit);
        const send = session.sends.begin(mark, originOf(permit), () =>
          sessionBook.startSend(session, {
            text: request.text,
            submit,
            timeoutMs,
            leases: leasesOf(permit),
            ...(mark && { mark }),
          }),
        );
        await serveSend(context, { call, out, standing, stream, send, afterIndex: 0 });
      });
    },

    async readSend(request, call, out) {
      const ask = { action: 'terminal.read', target: storedTarget(request.terminal) } as const;
      const standing = await Standing.open(gate, callerOf(call, 'open'), ask);
      await onRecord(context, standing.permit, out, async () => {
        const afterIndex = parseCount('after_index', request.afterIndex);
        using stream = streams.open(standing.permit.token, call);
        const send = await find(standing.permit, request.sendId);
        await serveSend(context, {
          call,
          out,
          standing,
          stream,
          send,
          isOther: true,
          afterIndex,
        });
      });
    },

    cancelSend(request, call) {
      const target = storedTarget(request.terminal);
      const ask = { action: 'terminal.signal', target, signal: 'SIGINT' } as const;
      return perform(gate, callerOf(call), ask, async (permit) => {
        const { operation } = await find(permit, request.sendId);
        const leases = leasesOf(permit);
        const cancelled = (await operation.interrupt?.(leases)) ?? operation.cancel();
        return { cancelled };
      });
    },
  };

  /** @throws TERMINAL_NOT_FOUND */
  async function find(permit: Permit, sendId: string): Promise<SessionSend> {
    const send = (await sessionBook.find(permit)).sends.get(sendId);
    if (send !== undefined) return send;
    throw noSuchSend();
  }
}

function inputOf({ text, submit = true }: SendRequest) {
  return { input: Buffer.from(submit ? text + ENTER : text), submit };
}

/** Checks all fields; gives the time-out in milliseconds. */
function checkSend({ text, timeout }: SendRequest): number {
  if (Buffer.byteLength(text) > MAX_INPUT_FRAME_BYTES) {
    throw fieldInvalid('text', `must have at most ${MAX_INPUT_FRAME_BYTES} bytes`);
  }
  if (timeout === undefined) return DEFAULT_TIMEOUT_MS;
  return inMilliseconds('timeout', timeout, 1, MAX_TIMEOUT_MS);
}

function originOf(permit: Permit) {
  const { nextSeq, record } = stored(permit);
  return { lastSeq: nextSeq - 1, logEpoch: record.logEpoch };
}

/** Everything of it happens under what was decided. */
function leasesOf({ lease }: Permit): LeaseSource {
  return { lease: () => lease };
}
