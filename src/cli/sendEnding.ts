/** What a person is told of how a send ended, where its output does not say it. */
import type { SendResult, SessionStatus } from '../gen/public/grantty/v1/session_service_pb.js';
import { WaitReason } from '../gen/public/grantty/v1/session_service_pb.js';

/** One line each; `cut`: a delta said so. */
export function endingNotes(result: SendResult, cut: boolean): readonly string[] {
  const { waitReason, truncated, skippedFromSeq } = result;
  const ended = endNote(waitReason, result.sessionStatus);
  const isCut = cut || truncated || skippedFromSeq !== undefined;
  return [
    ...(isCut
      ? ['the output was cut: its oldest part is not shown; "ctx terminal watch" has all of it']
      : []),
    ...(ended === undefined ? [] : [ended]),
  ];
}

function endNote(reason: WaitReason, status: SessionStatus | undefined): string | undefined {
  switch (reason) {
    case WaitReason.STDIN_READ:
    case WaitReason.UNSPECIFIED:
      return undefined;
    case WaitReason.INFERRED_IDLE:
      return `it was not seen to be ready, only silent: it may go on running; ${WAIT_ON}`;
    case WaitReason.TIMEOUT:
      return `the time was up: it may go on running; ${WAIT_ON}`;
    case WaitReason.SESSION_EXIT:
      return exitNote(status);
    default:
      return `the wait ended for a reason that this version does not know (${String(reason)})`;
  }
}

const WAIT_ON = 'to wait on, send "" with --no-submit';

function exitNote(status: SessionStatus | undefined): string {
  if (status?.kind.case !== 'exited') return 'the session has exited';
  const { exitCode, signal } = status.kind.value;
  if (signal !== '') return `the session was ended by ${signal}`;
  return exitCode === undefined
    ? 'the session has exited'
    : `the session has exited with ${exitCode}`;
}
