/** What Watch and Attach have in common: `started`, delivery, `closing`, and the status. */
import { isLive } from '../core/terminal.js';
import { Until } from '../gen/public/grantty/v1/stream_pb.js';
import { resourceDir } from '../store/paths.js';
import { LogReader } from '../store/reader/logReader.js';
import type { Call } from './call.js';
import type { ServerContext } from './context.js';
import { withMetadata } from './decisionDraft.js';
import { Delivery } from './delivery.js';
import type { Ending } from './ending.js';
import { known } from './fields.js';
import type { Permit } from './gate.js';
import type { OpenStream } from './openStreams.js';
import type { Outlet } from './outlet.js';
import { recordOutcome, stored, withDecision } from './perform.js';
import type { Standing } from './standing.js';
import { type Start, startPosition } from './startPosition.js';
import { encodeMessage, encodeResize } from './streamEvents.js';
import { toTerminal } from './wire.js';

export interface EventStream {
  readonly call: Call;
  readonly out: Outlet;
  readonly standing: Standing;
  readonly stream: OpenStream;
  readonly start: Start;
  readonly follow: boolean;
  readonly until: Until | undefined;
  /** What `started` says of the attachment. */
  readonly attachment?: {
    readonly attachmentId: string;
    readonly attachmentResumed: boolean;
    readonly inputBytes: bigint;
  };
  /** Called once `started` is on its way. */
  readonly onStarted?: (delivery: Delivery) => void;
}

/** Delivers until the end. @throws the error of the status that the stream ends with, unless it is OK */
export async function serveEvents(context: ServerContext, events: EventStream): Promise<void> {
  const { hub, stateDir, supervisor, clock } = context;
  const { call, out, standing, stream, start, follow, attachment } = events;
  const { permit } = standing;
  const terminal = stored(permit);
  const untilExit = isUntilExit(events.until);
  const openLog = () => LogReader.open(resourceDir(stateDir, permit.target), terminal.record.uid);

  const feed = follow ? await hub.join(terminal) : undefined;
  try {
    const through = feed?.lastSeq ?? terminal.nextSeq - 1;
    const after = await startPosition(start, terminal, through, openLog);
    const started = {
      terminal: toTerminal(terminal),
      logEpoch: terminal.record.logEpoch,
      firstSeq: BigInt(terminal.firstSeq),
      nextSeq: BigInt(through + 1),
      ...attachment,
    };
    out.write(encodeMessage({ case: 'started', value: started }));

    const delivery = new Delivery({
      key: permit.key,
      after,
      feed,
      through,
      untilExit,
      out,
      standing,
      supervisor,
      clock,
      openLog,
      over: call.signal,
      stop: stream.stop,
    });
    // Where the next event is yet to come, it will be printed at the size of now.
    const { size, state } = terminal.record;
    if (after === through && isLive(state)) delivery.resized(encodeResize(size, after + 1));
    stream.onRecheck = () => delivery.look();
    events.onStarted?.(delivery);
    close(out, await delivery.run(), delivery.lastSeq);
  } finally {
    feed?.leave();
  }
}

/** Says `closing`, after which nothing is said. @throws the error of the status, unless it is OK */
export function close(out: Outlet, { reason, error }: Ending, lastSeq = 0): void {
  out.write(encodeMessage({ case: 'closing', value: { reason, lastSeq: BigInt(lastSeq) } }));
  out.close();
  if (error) throw withMetadata(error, { last_seq: String(lastSeq) });
}

/** @throws FIELD_INVALID */
function isUntilExit(until: Until | undefined): boolean {
  if (until === undefined || until === Until.EXIT) return true;
  known('until', until === Until.NEVER ? until : undefined);
  return false;
}

/** Runs a stream that `decision` has opened, and puts on record how it ended. */
export async function onRecord(
  { gate }: ServerContext,
  decision: Pick<Permit, 'decisionId'>,
  out: Outlet,
  serve: () => Promise<void>,
): Promise<void> {
  const facts = () => ({ outputBytes: out.sentBytes });
  try {
    await serve();
    recordOutcome(gate, decision, undefined, facts());
  } catch (error) {
    recordOutcome(gate, decision, error, facts());
    throw withDecision(error, decision);
  }
}
