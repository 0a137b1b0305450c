/** Arguments of the supervisor's methods on their way across. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type * as connection from '../../gen/internal/grantty/internal/v1/connection_pb.js';
import type * as control from '../../gen/internal/grantty/internal/v1/control_pb.js';
import type {
  AttachmentSpec,
  CreateSpec,
  Lease,
  ListPart,
  StartSpec,
  TerminalKey,
  UpdateSpec,
} from '../api.js';
import { defined, name, required, word } from './arrival.js';
import {
  attachmentKinds,
  decodeCreatedBy,
  decodeRequestMark,
  decodeSize,
  decodeTuple,
  encodeCreatedBy,
  onExits,
} from './recordCodec.js';

export function decodeKey(key: connection.Key | undefined): TerminalKey {
  const { owner, id, uid } = required('a key', key);
  return defined<TerminalKey>({ owner: name(owner), id: name(id), uid });
}

/** Undefined for all of the list. */
export function decodeListPart({ after, limit }: control.List): ListPart | undefined {
  if (limit === undefined) return undefined;
  return { limit, ...(after && { after: { owner: name(after.owner), id: name(after.id) } }) };
}

/** `scope` is the connection that the lease came by. */
export function decodeLease(lease: control.Lease | undefined, scope: string): Lease {
  const { id, notAfter } = required('a lease', lease);
  return { id, notAfter, scope };
}

export function encodeCreate(spec: CreateSpec): MessageInitShape<typeof control.CreateSchema> {
  const { command, cwdUnder, createdBy, ...same } = spec;
  return {
    ...same,
    command: [...command],
    cwdUnder: encodeDirectories(cwdUnder),
    createdBy: createdBy && encodeCreatedBy(createdBy),
  };
}

export function decodeCreate(spec: control.Create): CreateSpec {
  return defined<CreateSpec>({
    tuple: decodeTuple(spec.tuple),
    command: spec.command,
    cwd: spec.cwd,
    cwdUnder: spec.cwdUnder?.paths,
    env: spec.env,
    size: decodeSize(spec.size),
    title: spec.title,
    labels: spec.labels,
    name: spec.name,
    backend: spec.backend,
    onExit: word(onExits, spec.onExit),
    createdBy: spec.createdBy && decodeCreatedBy(spec.createdBy),
    request: decodeRequestMark(spec.request),
  });
}

export function encodeStart(
  key: TerminalKey,
  spec: StartSpec,
): MessageInitShape<typeof control.StartSchema> {
  const { size, cwdUnder, createdBy, request } = spec;
  return {
    key,
    size,
    cwdUnder: encodeDirectories(cwdUnder),
    createdBy: createdBy && encodeCreatedBy(createdBy),
    request,
  };
}

export function decodeStart(spec: control.Start): StartSpec {
  return defined<StartSpec>({
    size: spec.size && decodeSize(spec.size),
    cwdUnder: spec.cwdUnder?.paths,
    createdBy: spec.createdBy && decodeCreatedBy(spec.createdBy),
    request: decodeRequestMark(spec.request),
  });
}

export function encodeUpdate(
  key: TerminalKey,
  spec: UpdateSpec,
): MessageInitShape<typeof control.UpdateSchema> {
  const { title, labels } = spec;
  return { key, title, labels: labels && { entries: labels } };
}

export function decodeUpdate({ title, labels }: control.Update): UpdateSpec {
  return defined<UpdateSpec>({ title, labels: labels?.entries });
}

export function encodeAttachment(
  key: TerminalKey,
  spec: AttachmentSpec,
): MessageInitShape<typeof connection.InputSchema> {
  const { kind, subject, actor, principal, attachmentId } = spec;
  return { key, kind, subject, actor, principal, attachmentId };
}

export function decodeAttachmentSpec(input: connection.Input): AttachmentSpec {
  const { kind, subject, actor, principal, attachmentId } = input;
  return defined<AttachmentSpec>({
    kind: word(attachmentKinds, kind),
    subject,
    actor,
    principal,
    attachmentId,
  });
}

function encodeDirectories(paths: readonly string[] | undefined) {
  return paths && { paths: [...paths] };
}
