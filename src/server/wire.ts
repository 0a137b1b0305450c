/** From the domain to messages of the contract: the terminal's record and the types in it. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { ErrorReason } from '../core/errors.js';
import type { ExitStatus, TerminalSize } from '../core/event.js';
import type { ExitReason } from '../core/exitReason.js';
import type { SignalName } from '../core/signals.js';
import {
  type CreatedBy,
  isLive,
  type OnExit,
  type TerminalRecord,
  type TerminalState,
} from '../core/terminal.js';
import * as pbErrors from '../gen/public/grantty/v1/errors_pb.js';
import * as pb from '../gen/public/grantty/v1/terminal_pb.js';
import type { AttachmentInfo, SurvivingProcess, TerminalSnapshot } from '../supervisor/api.js';

const stateToWire: Readonly<Record<TerminalState, pb.TerminalState>> = {
  created: pb.TerminalState.CREATED,
  running: pb.TerminalState.RUNNING,
  exited: pb.TerminalState.EXITED,
  error: pb.TerminalState.ERROR,
};

const onExitToWire: Readonly<Record<OnExit, pb.OnExit>> = {
  leave: pb.OnExit.LEAVE,
  sweep: pb.OnExit.SWEEP,
};

const kindToWire: Readonly<Record<AttachmentInfo['kind'], pb.AttachmentKind>> = {
  agent: pb.AttachmentKind.AGENT,
  human: pb.AttachmentKind.HUMAN,
  service: pb.AttachmentKind.SERVICE,
};

const modeToWire: Readonly<Record<AttachmentInfo['mode'], pb.AttachmentMode>> = {
  read: pb.AttachmentMode.READ,
  'read-write': pb.AttachmentMode.READ_WRITE,
};

const pauseToWire: Readonly<Record<NonNullable<TerminalSnapshot['paused']>, pb.PauseReason>> = {
  'log-unwritable': pb.PauseReason.LOG_UNWRITABLE,
  'log-quota': pb.PauseReason.QUOTA_LOG_BYTES,
};

/** The wire names a signal as we do, without SIG; a value that is missing there fails the type. */
const signalFromWire: Readonly<Record<keyof typeof pb.Signal, SignalName | undefined>> = {
  UNSPECIFIED: undefined,
  HUP: 'SIGHUP',
  INT: 'SIGINT',
  QUIT: 'SIGQUIT',
  KILL: 'SIGKILL',
  USR1: 'SIGUSR1',
  USR2: 'SIGUSR2',
  TERM: 'SIGTERM',
  CONT: 'SIGCONT',
  STOP: 'SIGSTOP',
  TSTP: 'SIGTSTP',
  TTIN: 'SIGTTIN',
  TTOU: 'SIGTTOU',
  WINCH: 'SIGWINCH',
  ALRM: 'SIGALRM',
};

export function toSignal(name: SignalName): pb.Signal {
  const key = keyOf(signalFromWire, name);
  return key === undefined ? pb.Signal.UNSPECIFIED : pb.Signal[key];
}

/** Undefined for UNSPECIFIED and for a value that this server does not know. */
export function signalOf(signal: pb.Signal): SignalName | undefined {
  const name = pb.Signal[signal] as keyof typeof pb.Signal | undefined;
  return name === undefined ? undefined : signalFromWire[name];
}

export function terminalStateOf(state: pb.TerminalState): TerminalState | undefined {
  return keyOf(stateToWire, state);
}

export function onExitOf(onExit: pb.OnExit): OnExit | undefined {
  return keyOf(onExitToWire, onExit);
}

export function attachmentKindOf(kind: pb.AttachmentKind): AttachmentInfo['kind'] | undefined {
  return keyOf(kindToWire, kind);
}

export function toReason(reason: ErrorReason): pbErrors.ErrorReason {
  return pbErrors.ErrorReason[reason];
}

export function toSize(size: TerminalSize): MessageInitShape<typeof pb.TerminalSizeSchema> {
  return { columns: size.cols, rows: size.rows };
}

export function toExitStatus(exit: ExitStatus): MessageInitShape<typeof pb.ExitStatusSchema> {
  return {
    ...(exit.exitCode === undefined ? {} : { exitCode: exit.exitCode }),
    signal: exit.signal ?? '',
    reason: exitReason(exit),
    survivors: exit.survivors ?? 0,
  };
}

const endedBySupervisor = {
  'supervisor-stopped': pb.ExitReason.SUPERVISOR_STOPPED,
  'idle-limit': pb.ExitReason.IDLE_LIMIT,
  'lifetime-limit': pb.ExitReason.LIFETIME_LIMIT,
} satisfies Partial<Record<ExitReason, pb.ExitReason>>;

function exitReason(exit: ExitStatus): pb.ExitReason {
  const { reason } = exit;
  if (exit.exitCode === undefined) return pb.ExitReason.SUPERVISOR_LOST;
  if (reason !== undefined && Object.hasOwn(endedBySupervisor, reason)) {
    return endedBySupervisor[reason as keyof typeof endedBySupervisor];
  }
  return exit.signal === undefined ? pb.ExitReason.EXITED : pb.ExitReason.SIGNALED;
}

export function toTerminal(
  snapshot: TerminalSnapshot,
  attachments: readonly AttachmentInfo[] = [],
): pb.Terminal {
  const state = stateFields(snapshot, attachments);
  return create(pb.TerminalSchema, { ...recordFields(snapshot.record), ...state });
}

/** What changes without the record. */
export function stateFields(
  { firstSeq, nextSeq, paused }: TerminalSnapshot,
  attachments: readonly AttachmentInfo[],
): Pick<pb.Terminal, 'firstSeq' | 'nextSeq' | 'attachments' | 'paused'> {
  return {
    firstSeq: BigInt(firstSeq),
    nextSeq: BigInt(nextSeq),
    attachments: attachments.map(toAttachment),
    ...(paused === undefined ? {} : { paused: pauseToWire[paused] }),
  };
}

/** What follows from the record alone. */
export function recordFields(record: TerminalRecord): MessageInitShape<typeof pb.TerminalSchema> {
  const live = isLive(record.state);
  return {
    ref: { owner: record.owner, id: record.id },
    uid: record.uid,
    agent: record.agent,
    session: record.session,
    state: stateToWire[record.state],
    command: [...record.command],
    cwd: record.cwd,
    size: toSize(record.size),
    title: record.title,
    labels: { ...record.labels },
    ...(live && record.pid !== undefined ? { pid: record.pid } : {}),
    createdAt: timestampFromMs(record.createdAt * 1000),
    updatedAt: timestampFromMs(record.updatedAt),
    ...(record.exitedAt === undefined ? {} : { exitedAt: timestampFromMs(record.exitedAt) }),
    ...(record.exit === undefined ? {} : { exitStatus: toExitStatus(record.exit) }),
    instance: record.instance,
    logEpoch: record.logEpoch,
    socket: live ? (record.socket ?? '') : '',
    name: record.name,
    backend: record.backend,
    onExit: onExitToWire[record.onExit],
    ...(record.createdBy === undefined ? {} : { createdBy: toCreatedBy(record.createdBy) }),
  };
}

function toCreatedBy({
  issuer,
  subject,
  grants,
}: CreatedBy): MessageInitShape<typeof pb.CreatedBySchema> {
  return { issuer, subject, grantIds: [...grants] };
}

function toAttachment(attachment: AttachmentInfo): pb.Attachment {
  return create(pb.AttachmentSchema, {
    id: attachment.attachmentId,
    kind: kindToWire[attachment.kind],
    mode: modeToWire[attachment.mode],
    subject: attachment.subject,
    actor: attachment.actor ?? '',
    since: timestampFromMs(attachment.since),
  });
}

export function toProcess(
  survivor: SurvivingProcess,
): MessageInitShape<typeof pb.ProcessInfoSchema> {
  return { pid: survivor.pid, command: printable(survivor.comm) };
}

/** A process names itself: what could act on a reader's terminal is replaced. */
function printable(text: string): string {
  return text.replace(/\p{C}/gu, '\uFFFD');
}

function keyOf<K extends string, V>(table: Readonly<Record<K, V>>, value: V): K | undefined {
  return (Object.keys(table) as K[]).find((key) => table[key] === value);
}
