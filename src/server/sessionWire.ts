/** From sessions to messages of the contract. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import * as pb from '../gen/public/grantty/v1/session_service_pb.js';
import type { ScreenFormat } from '../session/screenState.js';
import type {
  TerminalSessionSnapshot,
  TerminalSessionStatus,
  TerminalWaitReason,
} from '../session/sessionTypes.js';
import type { OpenSession } from './sessionBook.js';
import type { SendResult } from './sessionSend.js';

const waitReasons: Readonly<Record<TerminalWaitReason, pb.WaitReason>> = {
  stdin_read: pb.WaitReason.STDIN_READ,
  inferred_idle: pb.WaitReason.INFERRED_IDLE,
  timeout: pb.WaitReason.TIMEOUT,
  session_exit: pb.WaitReason.SESSION_EXIT,
};

export function toSession(
  { tuple, sends }: OpenSession,
  snapshot: TerminalSessionSnapshot,
): MessageInitShape<typeof pb.SessionSchema> {
  const { name = '', type, pid, status } = snapshot;
  return {
    terminal: { owner: tuple.owner, id: tuple.id },
    agent: tuple.agent,
    session: tuple.session,
    name,
    type,
    ...(pid !== undefined && { pid }),
    status: toStatus(status),
    activeSendId: sends.activeId ?? '',
  };
}

function toStatus(status: TerminalSessionStatus): MessageInitShape<typeof pb.SessionStatusSchema> {
  if (status.kind === 'running') return { kind: { case: 'running', value: {} } };
  const { exitCode, signal } = status;
  const value = { ...(exitCode !== null && { exitCode }), signal: signal ?? '' };
  return { kind: { case: 'exited', value } };
}

/** `lastSeq`: where the backend does not tell. */
export function toSendResult(
  result: SendResult,
  lastSeq: number,
): MessageInitShape<typeof pb.SendResultSchema> {
  const { viewport, waitReason, sessionStatus, truncated, skippedFromSeq } = result;
  return {
    viewport,
    waitReason: waitReasons[waitReason],
    sessionStatus: toStatus(sessionStatus),
    truncated,
    lastSeq: BigInt(result.lastSeq ?? lastSeq),
    ...toSkipped({ skippedFromSeq }),
  };
}

export function toSkipped({ skippedFromSeq }: { readonly skippedFromSeq?: number | undefined }) {
  return skippedFromSeq === undefined ? {} : { skippedFromSeq: BigInt(skippedFromSeq) };
}

/** Undefined for UNSPECIFIED and for a value that this server does not know. */
export function screenFormatOf(format: pb.ScreenFormat): ScreenFormat | undefined {
  if (format === pb.ScreenFormat.TEXT) return 'text';
  return format === pb.ScreenFormat.ANSI ? 'ansi' : undefined;
}
