/** A supervisor in another process, reached over its Unix socket. */
import { AsyncQueue } from '../../core/asyncQueue.js';
import type { TerminalSize } from '../../core/event.js';
import type { Name } from '../../core/names.js';
import type { SignalName } from '../../core/signals.js';
import type { RequestMark } from '../../core/terminal.js';
import type {
  AttachmentSpec,
  CreateSpec,
  EndSpec,
  Lease,
  ListPart,
  StartSpec,
  StopSpec,
  Supervisor,
  TerminalChange,
  TerminalKey,
  TerminalSnapshot,
  UpdateSpec,
  WriteSpec,
} from '../api.js';
import { ChangeReceiver } from './changeReceiver.js';
import type { Call, ControlClient, Result, Values } from './controlClient.js';
import { ControlLink, type LinkOptions } from './controlLink.js';
import { dial } from './dial.js';
import type { FrameSocket } from './frameSocket.js';
import type { Unchanged } from './getCodec.js';
import { SocketInput } from './inputClient.js';
import { receiveOutput } from './outputClient.js';
import { unavailable, unsound } from './protocol.js';
import { decodeSnapshot } from './recordCodec.js';
import type { KnownRecord } from './recordMemory.js';
import {
  decodeDefaults,
  decodeEnd,
  decodeForeground,
  decodeInfo,
  decodePlan,
} from './resultCodec.js';
import { encodeAttachment, encodeCreate, encodeStart, encodeUpdate } from './specCodec.js';

/** Bytes of lease ids that one request holds at most; a longer list goes in several. */
const MAX_FENCE_BYTES = 256 * 1024;

/** Changes that wait for one follower; above it the follower is ended and comes back by its cursor. */
const MAX_CHANGES_AHEAD = 4096;

/**
 * Connects, and connects again with growing pauses whenever the connection is lost. Until then
 * every call fails with SUPERVISOR_UNAVAILABLE; so do the calls and streams that were open at the
 * loss, what they had asked for may have happened, and input that was queued is dropped. Disposing
 * closes the connections; the supervisor and its terminals live on.
 * @throws SUPERVISOR_UNAVAILABLE when nobody answers or the supervisor refuses the connection,
 * FIELD_INVALID for an unsafe path
 */
export async function connectSupervisor(options: LinkOptions): Promise<Supervisor> {
  const streams = new Set<FrameSocket>();
  const link = await ControlLink.open(options, () => {
    for (const frames of streams) frames.destroy();
  });
  return new SocketSupervisor(options, link, streams);
}

const NOBODY: TerminalSnapshot['attachments'] = [];

class SocketSupervisor implements Supervisor {
  readonly #options: LinkOptions;
  readonly #link: ControlLink;
  /** Input and output connections. They end with the control connection. */
  readonly #streams: Set<FrameSocket>;

  constructor(options: LinkOptions, link: ControlLink, streams: Set<FrameSocket>) {
    this.#options = options;
    this.#link = link;
    this.#streams = streams;
  }

  info() {
    return this.#ask({ case: 'info', value: {} }, 'info', decodeInfo);
  }

  defaults(owner: Name) {
    return this.#ask({ case: 'defaults', value: { owner } }, 'defaults', decodeDefaults);
  }

  create(spec: CreateSpec) {
    return this.#askSnapshot({ case: 'create', value: encodeCreate(spec) });
  }

  start(key: TerminalKey, spec: StartSpec) {
    return this.#askSnapshot({ case: 'start', value: encodeStart(key, spec) });
  }

  launchPlan(key: TerminalKey) {
    return this.#ask({ case: 'launchPlan', value: { key } }, 'launchPlan', decodePlan);
  }

  update(key: TerminalKey, spec: UpdateSpec) {
    return this.#askSnapshot({ case: 'update', value: encodeUpdate(key, spec) });
  }

  remove(key: TerminalKey) {
    return this.#ask({ case: 'remove', value: { key } }, 'done', nothing);
  }

  /** One promise from here to the answer: it is asked for every decision. */
  get(key: TerminalKey): Promise<TerminalSnapshot | undefined> {
    return new Promise((resolve, reject) => {
      const { client } = this.#link;
      const known = client.records.recall(key);
      client.get(
        key,
        known?.revision ?? 0,
        (result) => {
          try {
            resolve(this.#got(client, known, result));
          } catch (error) {
            reject(error);
          }
        },
        reject,
      );
    });
  }

  #got(
    client: ControlClient,
    known: KnownRecord | undefined,
    result: Result | Unchanged,
  ): TerminalSnapshot | undefined {
    if (result.case === 'done') return undefined;
    if (result.case === 'unchanged') {
      const { revision, firstSeq, nextSeq } = result;
      if (known?.revision !== revision) throw unsound('a revision that nobody has');
      return { record: known.record, firstSeq, nextSeq, attachments: NOBODY };
    }
    const value = resultOf(result, 'snapshot');
    const { revision } = value;
    const snapshot = decodeSnapshot(value, known?.record);
    if (revision !== known?.revision) client.records.keep({ revision, record: snapshot.record });
    return snapshot;
  }

  async list(owner?: Name, part?: ListPart): Promise<readonly TerminalSnapshot[]> {
    const value = { owner, after: part?.after, limit: part?.limit };
    const results = await this.#link.client.collect({ case: 'list', value });
    return results.map((result) => decodeSnapshot(resultOf(result, 'snapshot')));
  }

  async *changes(
    cursor: string | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<TerminalChange, void, undefined> {
    const queue = new AsyncQueue<TerminalChange>(MAX_CHANGES_AHEAD);
    const end = () => queue.end();
    const { client } = this.#link;
    const id = client.start(
      { case: 'changes', value: { cursor } },
      new ChangeReceiver(queue, () => client.cancel(id)),
    );
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    try {
      yield* queue;
    } finally {
      client.cancel(id);
      signal.removeEventListener('abort', end);
    }
  }

  exited(key: TerminalKey, signal: AbortSignal) {
    return this.#askSnapshot({ case: 'exited', value: { key } }, signal);
  }

  openOutput(key: TerminalKey, signal: AbortSignal) {
    return this.#open({ case: 'output', value: { key } }, 'opened', ({ nextSeq }, frames) =>
      receiveOutput(frames, nextSeq, signal),
    );
  }

  attach(key: TerminalKey, spec: AttachmentSpec) {
    const value = encodeAttachment(key, spec);
    return this.#open(
      { case: 'input', value },
      'attached',
      (attached, frames) => new SocketInput(frames, attached),
    );
  }

  write(key: TerminalKey, spec: WriteSpec) {
    const { data, lease, request } = spec;
    return this.#ask(
      { case: 'write', value: { key, data, lease, request } },
      'written',
      ({ lastSeq }) => ({ lastSeq }),
    );
  }

  resize(key: TerminalKey, size: TerminalSize, lease: Lease) {
    return this.#ask({ case: 'resize', value: { key, size, lease } }, 'done', nothing);
  }

  signal(key: TerminalKey, name: SignalName, lease: Lease, request?: RequestMark) {
    return this.#ask(
      { case: 'signal', value: { key, name, lease, request } },
      'signaled',
      ({ processGroup }) => ({ processGroup }),
    );
  }

  stop(key: TerminalKey, { graceMs, lease }: StopSpec) {
    return this.#ask({ case: 'stop', value: { key, graceMs, lease } }, 'ended', decodeEnd);
  }

  kill(key: TerminalKey, { lease }: EndSpec) {
    return this.#ask({ case: 'kill', value: { key, lease } }, 'ended', decodeEnd);
  }

  foreground(key: TerminalKey) {
    return this.#ask({ case: 'foreground', value: { key } }, 'foreground', decodeForeground);
  }

  async fence(leaseIds: readonly string[]): Promise<void> {
    await Promise.all(
      inParts(leaseIds).map((part) =>
        this.#ask({ case: 'fence', value: { leaseIds: part } }, 'done', nothing),
      ),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#link[Symbol.asyncDispose]();
    await Promise.all([...this.#streams].map((frames) => frames.closed));
  }

  #askSnapshot(call: Call, signal?: AbortSignal): Promise<TerminalSnapshot> {
    return this.#ask(call, 'snapshot', (value) => decodeSnapshot(value), signal);
  }

  async #ask<Case extends keyof Values, T>(
    call: Call,
    expected: Case,
    decode: (value: Values[Case]) => T,
    signal?: AbortSignal,
  ): Promise<T> {
    return decode(resultOf(await this.#link.client.call(call, signal), expected));
  }

  /** A connection of its own, which ends with the control connection at the latest. */
  async #open<Case extends 'attached' | 'opened', T>(
    purpose: Parameters<typeof dial<Case, T>>[1],
    expected: Case,
    accept: Parameters<typeof dial<Case, T>>[3],
  ): Promise<T> {
    const { client } = this.#link;
    return dial<Case, T>(this.#options, purpose, expected, (welcome, frames) => {
      if (!client.isOpen) throw unavailable('the connection to the supervisor was lost');
      this.#streams.add(frames);
      void frames.closed.then(() => this.#streams.delete(frames));
      return accept(welcome, frames);
    });
  }
}

function resultOf<Case extends keyof Values>(result: Result, expected: Case): Values[Case] {
  if (result.case !== expected) throw unsound('an unexpected answer');
  return result.value as Values[Case];
}

function nothing(): void {}

/** Lists that each fit a message. UTF-8 takes at most three bytes for each UTF-16 unit. */
function inParts(ids: readonly string[]): string[][] {
  const parts: string[][] = [];
  let room = 0;
  for (const id of ids) {
    const bytes = 3 * id.length;
    if (room < bytes) {
      parts.push([]);
      room = MAX_FENCE_BYTES;
    }
    parts.at(-1)?.push(id);
    room -= bytes;
  }
  return parts;
}
