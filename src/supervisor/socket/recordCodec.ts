/** Records and states of terminals on their way across: core/terminal.ts and its parts. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ExitStatus, TerminalSize } from '../../core/event.js';
import type { TerminalTuple } from '../../core/names.js';
import {
  type CreatedBy,
  type ProcessMarks,
  type RequestMark,
  type TerminalRecord,
  terminalStates,
} from '../../core/terminal.js';
import type * as wire from '../../gen/internal/grantty/internal/v1/records_pb.js';
import type { AttachmentInfo, TerminalSnapshot } from '../api.js';
import { defined, name, required, word } from './arrival.js';

export const onExits = ['leave', 'sweep'] as const;
export const attachmentKinds = ['agent', 'human', 'service'] as const;
const attachmentModes = ['read', 'read-write'] as const;
const pauses = ['log-unwritable', 'log-quota'] as const;

export function encodeSnapshot(
  snapshot: TerminalSnapshot,
): MessageInitShape<typeof wire.SnapshotSchema> {
  return { ...encodeState(snapshot), record: encodeRecord(snapshot.record) };
}

/** What a snapshot says beside the record. */
export function encodeState({ firstSeq, nextSeq, attachments, paused }: TerminalSnapshot) {
  return {
    firstSeq,
    nextSeq,
    attachments: attachments.map((attachment) => ({ ...attachment })),
    paused,
  };
}

/** `known` is the record where the snapshot has none. */
export function decodeSnapshot(snapshot: wire.Snapshot, known?: TerminalRecord): TerminalSnapshot {
  const { record, firstSeq, nextSeq, attachments, paused } = snapshot;
  return {
    record: record ? decodeRecord(record) : required('a record', known),
    firstSeq,
    nextSeq,
    attachments: attachments.map(decodeAttachment),
    ...(paused !== undefined && { paused: word(pauses, paused) }),
  };
}

function encodeRecord(record: TerminalRecord): MessageInitShape<typeof wire.RecordSchema> {
  const { owner, agent, session, id, createdBy, command, logRewinds, ...same } = record;
  return {
    ...same,
    tuple: { owner, agent, session, id },
    command: [...command],
    createdBy: createdBy && encodeCreatedBy(createdBy),
    logRewinds: (logRewinds ?? []).map((rewind) => ({ ...rewind })),
  };
}

function decodeRecord(record: wire.Record): TerminalRecord {
  const { marks, createdBy, exit, request, logRewinds, startRequest } = record;
  return defined<TerminalRecord>({
    ...decodeTuple(record.tuple),
    cwd: record.cwd,
    command: record.command,
    state: word(terminalStates, record.state),
    socket: record.socket,
    createdAt: record.createdAt,
    uid: record.uid,
    instance: record.instance,
    pid: record.pid,
    marks: marks && decodeMarks(marks),
    size: decodeSize(record.size),
    title: record.title,
    labels: record.labels,
    backend: record.backend,
    name: record.name,
    onExit: word(onExits, record.onExit),
    createdBy: createdBy && decodeCreatedBy(createdBy),
    exit: exit && decodeExit(exit),
    exitedAt: record.exitedAt,
    updatedAt: record.updatedAt,
    logEpoch: record.logEpoch,
    request: decodeRequestMark(request),
    logRewinds:
      logRewinds.length > 0
        ? logRewinds.map(({ epoch, lastSeq }) => ({ epoch, lastSeq }))
        : undefined,
    startRequest: decodeRequestMark(startRequest),
  });
}

function decodeMarks({ nonce, startTime, bootId }: wire.ProcessMarks): ProcessMarks {
  return { nonce, startTime, bootId };
}

export function decodeTuple(tuple: wire.Tuple | undefined): TerminalTuple {
  const { owner, agent, session, id } = required('a tuple', tuple);
  return { owner: name(owner), agent: name(agent), session: name(session), id: name(id) };
}

export function decodeSize(size: wire.Size | undefined): TerminalSize {
  const { cols, rows } = required('a size', size);
  return { cols, rows };
}

export function encodeCreatedBy(
  createdBy: CreatedBy,
): MessageInitShape<typeof wire.CreatedBySchema> {
  return { ...createdBy, grants: [...createdBy.grants], actors: [...(createdBy.actors ?? [])] };
}

export function decodeCreatedBy({ issuer, subject, grants, actors }: wire.CreatedBy): CreatedBy {
  return { issuer, subject, grants, ...(actors.length > 0 && { actors }) };
}

export function decodeRequestMark(mark: wire.RequestMark | undefined): RequestMark | undefined {
  return mark && { key: mark.key, bodyHash: mark.bodyHash };
}

export function decodeExit(exit: wire.ExitStatus): ExitStatus {
  const { exitCode, signal, reason, survivors } = exit;
  return defined<ExitStatus>({ exitCode, signal, reason, survivors });
}

function decodeAttachment(attachment: wire.Attachment): AttachmentInfo {
  const { attachmentId, kind, subject, actor, since, mode } = attachment;
  return defined<AttachmentInfo>({
    attachmentId,
    kind: word(attachmentKinds, kind),
    subject,
    actor,
    since,
    mode: word(attachmentModes, mode),
  });
}
