/** The unary calls on a terminal that exists: read it, act on it, end it. */
import { signalsRaisedBy } from '../core/signals.js';
import {
  SignalRequestSchema,
  type TerminalService,
  WriteRequestSchema,
} from '../gen/public/grantty/v1/terminal_service_pb.js';
import type { EndResult } from '../supervisor/api.js';
import type { ServerContext } from './context.js';
import { notFound } from './errors.js';
import { checkInput, checkLabels, checkTitle, known, parseGrace, parseSize } from './fields.js';
import type { Ask, Permit } from './gate.js';
import type { Handlers } from './grpc.js';
import { callerOf, perform, stored } from './perform.js';
import { storedTarget } from './refs.js';
import { requestMark } from './requestMark.js';
import { encodeGetTerminalResponse, encodeTerminal } from './terminalBytes.js';
import { signalOf, toProcess, toSize, toTerminal } from './wire.js';

type Calls = Pick<
  Required<Handlers<typeof TerminalService>>,
  | 'getTerminal'
  | 'updateTerminal'
  | 'deleteTerminal'
  | 'write'
  | 'resize'
  | 'signal'
  | 'stop'
  | 'kill'
>;

export function terminalCalls(context: ServerContext): Calls {
  const { gate, supervisor, watchers, sessionBook } = context;
  return {
    getTerminal(request, call) {
      const ask: Ask = { action: 'terminal.read', target: storedTarget(request.terminal) };
      return perform(gate, callerOf(call), ask, (permit) => {
        const terminal = stored(permit);
        const attachments = [...terminal.attachments, ...watchers.of(terminal)];
        attachments.sort((a, b) => a.since - b.since);
        return encodeGetTerminalResponse(encodeTerminal(terminal, attachments));
      });
    },

    updateTerminal(request, call) {
      const ask: Ask = { action: 'terminal.create', target: storedTarget(request.terminal) };
      return perform(gate, callerOf(call), ask, async (permit) => {
        const { title, labels } = request;
        if (title !== undefined) checkTitle('title', title);
        if (labels !== undefined) checkLabels('labels.entries', labels.entries);
        const spec = {
          ...(title !== undefined && { title }),
          ...(labels !== undefined && { labels: labels.entries }),
        };
        return { terminal: toTerminal(await supervisor.update(permit.key, spec)) };
      });
    },

    deleteTerminal(request, call) {
      const ask: Ask = {
        action: 'terminal.create',
        also: ['terminal.kill'],
        target: storedTarget(request.terminal),
      };
      return perform(gate, callerOf(call), ask, async (permit) => {
        if (request.uid !== '' && request.uid !== stored(permit).record.uid) throw notFound();
        await supervisor.remove(permit.key);
        await sessionBook.terminalDeleted(permit);
        return {};
      });
    },

    write(request, call) {
      const ask: Ask = {
        action: 'terminal.write',
        target: storedTarget(request.terminal),
        signalBytes: signalsRaisedBy(request.data),
        inputBytes: request.data.length,
      };
      return perform(gate, callerOf(call), ask, async (permit) => {
        const { data } = request;
        checkInput(data);
        const mark = requestMark(permit, 'Write', WriteRequestSchema, request);
        const spec = { data, lease: permit.lease, ...(mark && { request: mark }) };
        const { lastSeq } = await supervisor.write(permit.key, spec);
        const { logEpoch } = stored(permit).record;
        return { lastSeq: BigInt(lastSeq), logEpoch, written: data.length };
      });
    },

    resize(request, call) {
      const ask: Ask = { action: 'terminal.resize', target: storedTarget(request.terminal) };
      return perform(gate, callerOf(call), ask, async (permit) => {
        const size = parseSize('size', request.size);
        await supervisor.resize(permit.key, size, permit.lease);
        return { size: toSize(size) };
      });
    },

    signal(request, call) {
      const signal = signalOf(request.signal);
      const ask: Ask = {
        action: 'terminal.signal',
        target: storedTarget(request.terminal),
        signal,
      };
      return perform(gate, callerOf(call), ask, async (permit) => {
        const name = known('signal', signal);
        const mark = requestMark(permit, 'Signal', SignalRequestSchema, request);
        const result = await supervisor.signal(permit.key, name, permit.lease, mark);
        return { targetPgid: result.processGroup };
      });
    },

    stop(request, call) {
      const ask: Ask = { action: 'terminal.stop', target: storedTarget(request.terminal) };
      return perform(gate, callerOf(call), ask, async (permit) => {
        const graceMs = parseGrace(request.grace);
        return ended(permit, await supervisor.stop(permit.key, { lease: permit.lease, graceMs }));
      });
    },

    kill(request, call) {
      const ask: Ask = { action: 'terminal.kill', target: storedTarget(request.terminal) };
      return perform(gate, callerOf(call), ask, async (permit) =>
        ended(permit, await supervisor.kill(permit.key, { lease: permit.lease })),
      );
    },
  };

  /** What stop and kill answer: the terminal as it is after them. */
  async function ended(permit: Permit, { survivors, quiescent, certain }: EndResult) {
    const terminal = (await supervisor.get(permit.key)) ?? stored(permit);
    return {
      terminal: toTerminal(terminal),
      survivors: survivors.map(toProcess),
      quiescent,
      quiescenceCertain: certain,
    };
  }
}
