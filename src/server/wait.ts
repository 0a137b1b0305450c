/** Wait: until a process exits, its output rests, or a pattern shows in it. */
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { fieldInvalid, GranttyError } from '../core/errors.js';
import type { ExitEvent, ExitStatus, OutputEvent, TerminalEvent } from '../core/event.js';
import { isLive } from '../core/terminal.js';
import {
  type TerminalService,
  WaitOutcome,
  type WaitRequest,
} from '../gen/public/grantty/v1/terminal_service_pb.js';
import { resourceDir } from '../store/paths.js';
import { LogReader } from '../store/reader/logReader.js';
import type { Supervisor, TerminalKey, TerminalSnapshot } from '../supervisor/api.js';
import type { ServerContext } from './context.js';
import { notFound } from './errors.js';
import { lookOn } from './eventTail.js';
import type { Handlers } from './grpc.js';
import type { Feed } from './hub.js';
import { OutputPattern } from './outputPattern.js';
import { callerOf, recordOutcome, stored, withDecision } from './perform.js';
import { storedTarget } from './refs.js';
import { Standing } from './standing.js';
import { afterPosition } from './startPosition.js';
import { inMilliseconds } from './times.js';
import { whileStanding } from './whileStanding.js';
import { toExitStatus } from './wire.js';

/** Milliseconds of rest that can be waited for. */
const MAX_IDLE_MS = 3_600_000;

type Condition =
  | { readonly kind: 'exit' }
  | { readonly kind: 'idle'; readonly ms: number }
  | { readonly kind: 'pattern'; readonly pattern: OutputPattern };

interface Waited {
  readonly outcome: WaitOutcome;
  readonly matchedSeq?: number;
  readonly exit?: ExitStatus;
}

type WaitHandler = NonNullable<Handlers<typeof TerminalService>['wait']>;

export function wait(context: ServerContext): WaitHandler {
  const { gate, streams, clock, supervisor, hub } = context;
  return async (request, call) => {
    const standing = await Standing.open(gate, callerOf(call, 'open'), {
      action: 'terminal.read',
      target: storedTarget(request.terminal),
    });
    const { permit } = standing;
    try {
      const condition = parseCondition(request);
      using stream = streams.open(permit.token, call);
      const footing = { standing, stream, clock, over: call.signal };
      const answer = await whileStanding(footing, async (stop) => {
        let terminal = stored(permit);
        if (condition.kind === 'exit' && request.afterSeq === undefined) {
          const told = await exitOf(supervisor, permit.key, terminal, stop);
          if (told) return told;
        }
        // The record may say that it ended a moment before the last event is out.
        if (!isLive(terminal.record.state)) terminal = await supervisor.exited(permit.key, stop);
        const { logEpoch } = terminal.record;
        const feed = await hub.join(terminal);
        try {
          stop.throwIfAborted();
          const waited = await meet(context, request, condition, terminal, feed, stop);
          return { ...waited, lastSeq: feed.lastSeq, logEpoch };
        } finally {
          feed.leave();
        }
      });
      recordOutcome(gate, permit);
      const { outcome, matchedSeq, exit, lastSeq, logEpoch } = answer;
      return {
        outcome,
        ...(matchedSeq !== undefined && { matchedSeq: BigInt(matchedSeq) }),
        ...(exit && { exitStatus: toExitStatus(exit) }),
        lastSeq: BigInt(lastSeq),
        logEpoch,
        time: timestampFromMs(clock.now()),
      };
    } catch (error) {
      recordOutcome(gate, permit, error);
      throw withDecision(error, permit);
    }
  };
}

/**
 * The exit of the latest instance, which the record tells as well as the log: nothing of its output is
 * asked for. Undefined where somebody has started it again since; then the log alone knows.
 */
async function exitOf(
  supervisor: Supervisor,
  key: TerminalKey,
  { record: { instance } }: TerminalSnapshot,
  stop: AbortSignal,
): Promise<(Waited & { readonly lastSeq: number; readonly logEpoch: number }) | undefined> {
  const { record, nextSeq } = await supervisor.exited(key, stop);
  if (record.instance !== instance || !record.exit || isLive(record.state)) return undefined;
  const lastSeq = nextSeq - 1;
  const { exit, logEpoch } = record;
  return { outcome: WaitOutcome.EXIT, matchedSeq: lastSeq, exit, lastSeq, logEpoch };
}

/** Follows the events until one meets the condition, or the process exits. */
async function meet(
  { clock, supervisor, stateDir }: ServerContext,
  { afterSeq, logEpoch }: WaitRequest,
  condition: Condition,
  terminal: TerminalSnapshot,
  feed: Feed,
  stop: AbortSignal,
): Promise<Waited> {
  const { record } = terminal;
  let after = condition.kind === 'pattern' ? terminal.firstSeq - 1 : terminal.nextSeq - 1;
  let firstInstance = record.instance;
  if (afterSeq !== undefined) {
    after = afterPosition(afterSeq, logEpoch, terminal, feed.lastSeq);
    firstInstance = 1;
  }
  // Nothing comes of what has ended, unless somebody starts it again.
  if (record.exit && !isLive(record.state) && after >= terminal.nextSeq - 1) {
    return { outcome: WaitOutcome.EXIT, matchedSeq: after, exit: record.exit };
  }

  const enough = new AbortController();
  const end = () => enough.abort();
  stop.addEventListener('abort', end);
  let rested = false;
  let cancelRest = () => {};
  try {
    const openLog = () => LogReader.open(resourceDir(stateDir, record), record.uid);
    const waited = await lookOn(feed, after, openLog, enough.signal, {
      look({ events, bytes }): Waited | undefined {
        cancelRest();
        const exit = events.find(
          (event): event is ExitEvent =>
            event.type === 'process.exit' && (event.instance ?? 1) >= firstInstance,
        );
        if (condition.kind === 'pattern') {
          const seq = condition.pattern.find(outputsBefore(exit, events), bytes);
          if (seq !== undefined) return { outcome: WaitOutcome.PATTERN, matchedSeq: seq };
        }
        return exit && { outcome: WaitOutcome.EXIT, matchedSeq: exit.seq, exit };
      },
      atEnd() {
        if (condition.kind !== 'idle') return;
        // From here on silence counts.
        cancelRest();
        cancelRest = clock.after(condition.ms, () => {
          rested = true;
          enough.abort();
        });
      },
    });
    if (waited) return waited;
  } finally {
    cancelRest();
    stop.removeEventListener('abort', end);
  }
  stop.throwIfAborted();
  if (rested) return { outcome: WaitOutcome.IDLE };
  if (feed.end?.error !== undefined) throw feed.end.error;
  const { owner, id, uid } = record;
  if ((await supervisor.get({ owner, id, uid })) === undefined) throw notFound();
  throw new GranttyError('SUPERVISOR_UNAVAILABLE', 'the supervisor has stopped; try again later');
}

function outputsBefore(
  exit: ExitEvent | undefined,
  events: readonly TerminalEvent[],
): readonly OutputEvent[] {
  return events.filter(
    (event): event is OutputEvent =>
      event.type === 'pty.output' && (exit === undefined || event.seq < exit.seq),
  );
}

/** @throws FIELD_INVALID */
function parseCondition({ condition }: WaitRequest): Condition {
  switch (condition.case) {
    case 'exit':
      if (!condition.value) throw fieldInvalid('exit', 'must be true where it is given');
      return { kind: 'exit' };
    case 'idle':
      return { kind: 'idle', ms: inMilliseconds('idle', condition.value, 1, MAX_IDLE_MS) };
    case 'pattern':
      return { kind: 'pattern', pattern: new OutputPattern(condition.value) };
    case undefined:
      throw fieldInvalid('condition', 'is required');
  }
}
