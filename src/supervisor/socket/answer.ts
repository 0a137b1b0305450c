/** What each request of a control connection means: one method of the supervisor. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { LateSignal } from '../../core/lateSignal.js';
import { isSignalName, type SignalName } from '../../core/signals.js';
import type {
  ChangeSchema,
  ReplySchema,
  Request,
} from '../../gen/internal/grantty/internal/v1/control_pb.js';
import type { Supervisor, TerminalChange } from '../api.js';
import { defined, name, required } from './arrival.js';
import { type AskedGet, encodeUnchanged } from './getCodec.js';
import { unsound } from './protocol.js';
import { decodeRequestMark, decodeSize, encodeSnapshot, encodeState } from './recordCodec.js';
import type { RecordRevisions } from './recordMemory.js';
import { encodeDefaults, encodeEnd, encodePlan } from './resultCodec.js';
import {
  decodeCreate,
  decodeKey,
  decodeLease,
  decodeListPart,
  decodeStart,
  decodeUpdate,
} from './specCodec.js';

export type Result = NonNullable<MessageInitShape<typeof ReplySchema>['result']>;

const DONE: Result = { case: 'done', value: {} };

/**
 * The answer to `get`: without the record where the client has that very one, and as bytes where there
 * is nothing else to say either. @throws as `answer`
 */
export async function answerGet(
  supervisor: Supervisor,
  { key, known }: Pick<AskedGet, 'known'> & { readonly key?: AskedGet['key'] | undefined },
  revisions: RecordRevisions,
  id: number,
): Promise<Result | Uint8Array> {
  const { owner, id: terminal, uid } = required('a key', key);
  const names = { owner: name(owner), id: name(terminal) };
  const found = await supervisor.get(uid === undefined ? names : { ...names, uid });
  if (found === undefined) return DONE;
  const revision = revisions.of(found.record);
  const unchanged = revision === known ? encodeUnchanged(id, found, revision) : undefined;
  if (unchanged !== undefined) return unchanged;
  const value = revision === known ? encodeState(found) : encodeSnapshot(found);
  return { case: 'snapshot', value: { ...value, revision } };
}

/**
 * Does what any other request asks and gives its answers in order: one, or for `list` and `changes`
 * its parts. `over` ends the calls that wait; `scope` goes to every lease.
 * @throws what the supervisor throws
 */
export async function* answer(
  supervisor: Supervisor,
  call: Request['call'],
  over: LateSignal,
  scope: string,
): AsyncGenerator<Result, void, undefined> {
  switch (call.case) {
    case 'info':
      yield { case: 'info', value: await supervisor.info() };
      return;
    case 'defaults': {
      const defaults = await supervisor.defaults(name(call.value.owner));
      yield { case: 'defaults', value: encodeDefaults(defaults) };
      return;
    }

    // The life of a resource.
    case 'create':
      yield snapshot(await supervisor.create(decodeCreate(call.value)));
      return;
    case 'start': {
      const key = decodeKey(call.value.key);
      yield snapshot(await supervisor.start(key, decodeStart(call.value)));
      return;
    }
    case 'launchPlan': {
      const plan = await supervisor.launchPlan(decodeKey(call.value.key));
      yield { case: 'launchPlan', value: encodePlan(plan) };
      return;
    }
    case 'update': {
      const key = decodeKey(call.value.key);
      yield snapshot(await supervisor.update(key, decodeUpdate(call.value)));
      return;
    }
    case 'remove':
      await supervisor.remove(decodeKey(call.value.key));
      yield DONE;
      return;

    // What there is.
    case 'list': {
      const { owner } = call.value;
      const terminals = await supervisor.list(
        owner === undefined ? undefined : name(owner),
        decodeListPart(call.value),
      );
      for (const terminal of terminals) yield snapshot(terminal);
      yield DONE;
      return;
    }
    case 'changes':
      for await (const change of supervisor.changes(call.value.cursor, over.signal)) {
        for (const value of parts(change)) yield { case: 'change', value };
      }
      yield DONE;
      return;
    case 'exited':
      yield snapshot(await supervisor.exited(decodeKey(call.value.key), over.signal));
      return;

    // Effects on the process, each under a lease.
    case 'write': {
      const { key, data, lease, request } = call.value;
      const spec = { data, lease: decodeLease(lease, scope), request: decodeRequestMark(request) };
      yield { case: 'written', value: await supervisor.write(decodeKey(key), defined(spec)) };
      return;
    }
    case 'resize': {
      const { key, size, lease } = call.value;
      await supervisor.resize(decodeKey(key), decodeSize(size), decodeLease(lease, scope));
      yield DONE;
      return;
    }
    case 'signal': {
      const { key, lease, request } = call.value;
      const result = await supervisor.signal(
        decodeKey(key),
        signalName(call.value.name),
        decodeLease(lease, scope),
        decodeRequestMark(request),
      );
      yield { case: 'signaled', value: result };
      return;
    }
    case 'stop': {
      const { key, graceMs, lease } = call.value;
      const spec = { graceMs, lease: decodeLease(lease, scope) };
      yield { case: 'ended', value: encodeEnd(await supervisor.stop(decodeKey(key), spec)) };
      return;
    }
    case 'kill': {
      const { key, lease } = call.value;
      const spec = { lease: decodeLease(lease, scope) };
      yield { case: 'ended', value: encodeEnd(await supervisor.kill(decodeKey(key), spec)) };
      return;
    }
    case 'foreground': {
      const state = await supervisor.foreground(decodeKey(call.value.key));
      yield { case: 'foreground', value: state };
      return;
    }

    case 'fence':
      await supervisor.fence(call.value.leaseIds);
      yield DONE;
      return;

    case 'get':
    case 'cancel':
    case undefined:
      throw unsound('a request without a call');
  }
}

function snapshot(terminal: Parameters<typeof encodeSnapshot>[0]): Result {
  return { case: 'snapshot', value: encodeSnapshot(terminal) };
}

function signalName(text: string): SignalName {
  if (isSignalName(text)) return text;
  throw unsound('an unknown signal');
}

/** A change as it crosses: a snapshot of all terminals one by one, as it may not fit one message. */
function* parts(change: TerminalChange): Generator<MessageInitShape<typeof ChangeSchema>> {
  const { cursor } = change;
  switch (change.kind) {
    case 'snapshot':
      for (const terminal of change.terminals) {
        yield { part: { case: 'listed', value: encodeSnapshot(terminal) } };
      }
      yield { part: { case: 'complete', value: {} }, cursor };
      return;
    case 'changed':
      yield { part: { case: 'changed', value: encodeSnapshot(change.terminal) }, cursor };
      return;
    case 'removed': {
      const { tuple, uid } = change;
      yield { part: { case: 'removed', value: { tuple, uid } }, cursor };
    }
  }
}
