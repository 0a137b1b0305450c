/** The JSON of meta.json: the specification's keys first and in its order, then ours. */
import { z } from 'zod';
import { DEFAULT_SIZE } from '../core/limits.js';
import { isRewindHistory } from '../core/logRewind.js';
import { isName, type Name } from '../core/names.js';
import { parseStrictJson } from '../core/strictJson.js';
import { type RequestMark, type TerminalRecord, terminalStates } from '../core/terminal.js';

/**
 * Pretty JSON, a member a line, values on one line as in the specification's example. Times are
 * seconds; `exited_at` and `updated_at` carry milliseconds as a fraction.
 */
export function recordToJson(record: TerminalRecord): string {
  const { marks, createdBy, exit, request, startRequest } = record;
  const members: Readonly<Record<string, unknown>> = {
    id: record.id,
    agent: record.agent,
    session: record.session,
    owner: record.owner,
    cwd: record.cwd,
    command: record.command,
    state: record.state,
    socket: record.socket,
    created_at: record.createdAt,
    uid: record.uid,
    instance: record.instance,
    pid: record.pid,
    started_by: marks && {
      nonce: marks.nonce,
      start_time: marks.startTime,
      boot_id: marks.bootId,
    },
    cols: record.size.cols,
    rows: record.size.rows,
    title: record.title,
    labels: record.labels,
    backend: record.backend,
    name: record.name,
    on_exit: record.onExit,
    created_by: createdBy && {
      issuer: createdBy.issuer,
      subject: createdBy.subject,
      grants: createdBy.grants,
      actors: createdBy.actors,
    },
    exit_code: exit?.exitCode,
    signal: exit?.signal,
    reason: exit?.reason,
    survivors: exit?.survivors,
    exited_at: record.exitedAt === undefined ? undefined : record.exitedAt / 1000,
    updated_at: record.updatedAt / 1000,
    log_epoch: record.logEpoch,
    request: request && requestJson(request),
    log_rewinds: record.logRewinds?.map(({ epoch, lastSeq }) => ({ epoch, last_seq: lastSeq })),
    start_request: startRequest && requestJson(startRequest),
  };
  const lines = Object.entries(members)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `  ${JSON.stringify(key)}: ${inline(value)}`);
  return `{\n${lines.join(',\n')}\n}\n`;
}

function requestJson({ key, bodyHash }: RequestMark): object {
  return { key, body_hash: bodyHash };
}

/** JSON on one line, with a space after each comma and colon. */
function inline(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inline).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .map(([key, item]) => `${JSON.stringify(key)}: ${inline(item)}`);
  return `{${members.join(', ')}}`;
}

const name = z.custom<Name>((value) => typeof value === 'string' && isName(value), 'is not a name');
const count = z.int().min(0);
/** As much as a message has room for. */
const uint32 = count.max(0xffff_ffff);
/** Up to the year 9999, where a protobuf Timestamp ends. */
const seconds = z.number().min(0).max(253_402_300_799);
const cells = z.int().min(1).max(65_535);
const text = z.string();

const requestMark = z
  .object({ key: text, body_hash: text })
  .transform(({ key, body_hash: bodyHash }): RequestMark => ({ key, bodyHash }));

/** Keys that are not known are dropped: later versions and other writers may add some. */
const recordShape = z.object({
  id: name,
  agent: name,
  session: name,
  owner: name,
  cwd: text.startsWith('/'),
  command: z.array(text).min(1),
  state: z.enum(terminalStates),
  socket: text.optional(),
  created_at: count.max(253_402_300_799),
  uid: text.default(''),
  instance: uint32.default(0),
  pid: uint32.min(1).optional(),
  started_by: z.object({ nonce: text.min(1), start_time: count, boot_id: text.min(1) }).optional(),
  cols: cells.default(DEFAULT_SIZE.cols),
  rows: cells.default(DEFAULT_SIZE.rows),
  title: text.default(''),
  labels: z.record(text, text).default({}),
  backend: text.default('command'),
  name: text.default(''),
  on_exit: z.enum(['leave', 'sweep']).default('leave'),
  created_by: z
    .object({
      issuer: text,
      subject: text,
      grants: z.array(text),
      actors: z.array(text).min(1).exactOptional(),
    })
    .optional(),
  exit_code: z.int().min(0).max(255).optional(),
  signal: text.optional(),
  reason: text.optional(),
  survivors: uint32.optional(),
  exited_at: seconds.optional(),
  updated_at: seconds.optional(),
  log_epoch: uint32.default(1),
  request: requestMark.optional(),
  log_rewinds: z.array(z.object({ epoch: uint32, last_seq: count })).optional(),
  start_request: requestMark.optional(),
});

/**
 * A record with the specification's keys alone is sound: what is ours then has its default, and
 * `uid` is empty, which no incarnation of ours has.
 * @throws Error that names what is wrong
 */
export function recordFromJson(json: string): TerminalRecord {
  const parsed = recordShape.safeParse(parseStrictJson(json));
  if (!parsed.success) throw new Error(z.prettifyError(parsed.error));
  const found = parsed.data;
  const logRewinds = found.log_rewinds?.map(({ epoch, last_seq }) => ({
    epoch,
    lastSeq: last_seq,
  }));
  if (logRewinds && !isRewindHistory(logRewinds, found.log_epoch)) {
    throw new Error('log_rewinds: must ascend, end before log_epoch, and be 16 at most');
  }
  const ended = found.state === 'exited' || found.state === 'error';
  return {
    owner: found.owner,
    agent: found.agent,
    session: found.session,
    id: found.id,
    cwd: found.cwd,
    command: found.command,
    state: found.state,
    ...present('socket', found.socket),
    createdAt: found.created_at,
    uid: found.uid,
    instance: found.instance,
    ...present('pid', found.pid),
    ...(found.started_by && {
      marks: {
        nonce: found.started_by.nonce,
        startTime: found.started_by.start_time,
        bootId: found.started_by.boot_id,
      },
    }),
    size: { cols: found.cols, rows: found.rows },
    title: found.title,
    labels: found.labels,
    backend: found.backend,
    name: found.name,
    onExit: found.on_exit,
    ...present('createdBy', found.created_by),
    ...(ended && {
      exit: {
        ...present('exitCode', found.exit_code),
        ...present('signal', found.signal),
        ...present('reason', found.reason),
        ...present('survivors', found.survivors),
      },
    }),
    ...present('exitedAt', found.exited_at && Math.round(found.exited_at * 1000)),
    updatedAt: Math.round((found.updated_at ?? found.created_at) * 1000),
    logEpoch: found.log_epoch,
    ...(found.request && { request: found.request }),
    ...present('logRewinds', logRewinds),
    ...(found.start_request && { startRequest: found.start_request }),
  };
}

/** A property, or none for an absent value (exactOptionalPropertyTypes). */
function present<K extends string, V>(key: K, value: V | undefined): { readonly [P in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [P in K]?: V });
}
