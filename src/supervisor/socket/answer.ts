/** What each request of a control connection means: one method of the supervisor. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { isSignalName, type SignalName } from '../../core/signals.js';
import type {
  ChangeSchema,
  ReplySchema,
  Request,
} from '../../gen/internal/grantty/internal/v1/control_pb.js';
import type { Supervisor, TerminalChange } from '../api.js';
import { defined, name } from './arrival.js';
import { unsound } from './protocol.js';
import { decodeRequestMark, decodeSize, encodeSnapshot } from './recordCodec.js';
import { encodeDefaults, encodeEnd, encodePlan } from './resultCodec.js';
import { decodeCreate, decodeKey, decodeLease, decodeStart, decodeUpdate } from './specCodec.js';

export type Result = NonNullable<MessageInitShape<typeof ReplySchema>['result']>;

const DONE: Result = { case: 'done', value: {} };

/**
 * Does what the request asks and gives its answers in order: one, or for `list` and `changes` its
 * parts. `signal` ends the calls that wait; `scope` goes to every lease.
 * @throws what the supervisor throws
 */
export async function* answer(
  supervisor: Supervisor,
  { call }: Request,
  signal: AbortSignal,
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
    case 'get': {
      const found = await supervisor.get(decodeKey(call.value.key));
      yield found ? snapshot(found) : DONE;
      return;
    }
    case 'list': {
      const { owner } = call.value;
      const terminals = await supervisor.list(owner === undefined ? undefined : name(owner));
      for (const terminal of terminals) yield snapshot(terminal);
      yield DONE;
      return;
    }
    case 'changes':
      for await (const change of supervisor.changes(call.value.cursor, signal)) {
        for (const value of parts(change)) yield { case: 'change', value };
      }
      yield DONE;
      return;
    case 'exited':
      yield snapshot(await supervisor.exited(decodeKey(call.value.key), signal));
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
