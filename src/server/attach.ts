/** Attach: a terminal's output to one client, and what that client sends, frame by frame. */
import { fieldInvalid } from '../core/errors.js';
import { AttachFrameKind } from '../gen/public/grantty/v1/stream_pb.js';
import type { TerminalSize } from '../gen/public/grantty/v1/terminal_pb.js';
import type {
  AttachOpen,
  AttachRequest,
  TerminalService,
} from '../gen/public/grantty/v1/terminal_service_pb.js';
import type { InputChannel } from '../supervisor/api.js';
import { Answers } from './answers.js';
import { admit } from './authorize.js';
import type { Clock } from './clock.js';
import type { ServerContext } from './context.js';
import type { Delivery } from './delivery.js';
import { onRecord, serveEvents } from './eventStream.js';
import { checkInput, known, parseSize } from './fields.js';
import type { Ask } from './gate.js';
import type { Handlers } from './grpc.js';
import { InputDecisions } from './inputDecisions.js';
import { InputLane } from './inputLane.js';
import { callerOf, perform, stored } from './perform.js';
import { storedTarget } from './refs.js';
import { Standing } from './standing.js';
import { attachmentKindOf, signalOf } from './wire.js';

/** Milliseconds for the first frame. Until it comes a call costs little, and is counted nowhere. */
const OPEN_FRAME_MS = 10_000;

type AttachHandler = NonNullable<Handlers<typeof TerminalService>['attach']>;

export function attach(context: ServerContext): AttachHandler {
  const { gate, streams, supervisor, clock } = context;
  return async (frames, call, out) => {
    // Without a good token nobody holds a stream open by sending nothing.
    await admit(gate, callerOf(call, 'open'));
    const incoming = frames[Symbol.asyncIterator]();
    const open = await openFrame(incoming, clock);
    const standing = await Standing.open(gate, callerOf(call, 'open'), {
      action: 'terminal.read',
      target: storedTarget(open.terminal),
    });
    await onRecord(context, standing.permit, out, async () => {
      const { key, token } = standing.permit;
      const kind = known('open.kind', attachmentKindOf(open.kind));
      using stream = streams.open(token, call);
      await using channel = await supervisor.attach(key, {
        ...(open.attachmentId !== '' && { attachmentId: parseAttachmentId(open.attachmentId) }),
        kind,
        subject: token.subject,
        ...(token.actors[0] !== undefined && { actor: token.actors[0] }),
        principal: JSON.stringify([token.issuer, token.subject]),
      });
      const ended = new AbortController();
      try {
        await serveEvents(context, {
          call,
          out,
          standing,
          stream,
          start: open.start,
          follow: true,
          until: open.until,
          attachment: {
            attachmentId: channel.attachmentId,
            attachmentResumed: channel.resumed,
            inputBytes: BigInt(channel.taken),
          },
          onStarted: (delivery) => {
            const answers = new Answers(out, ended.signal);
            const fail = (error: unknown) => stream.end(error);
            takeFrames(context, {
              open,
              incoming,
              answers,
              standing,
              channel,
              delivery,
              fail,
              renewed: () => {
                stream.token = standing.permit.token;
              },
              ended: ended.signal,
            }).catch(fail);
          },
        });
      } finally {
        ended.abort();
      }
    });
  };
}

/** As long as those that were given out (a UUID), and no longer. */
const MAX_ATTACHMENT_ID_LENGTH = 36;

function parseAttachmentId(text: string): string {
  if (text.length <= MAX_ATTACHMENT_ID_LENGTH) return text;
  throw fieldInvalid('open.attachment_id', 'must be one that `started` gave');
}

/** @throws FIELD_INVALID when something else comes first, or nothing in time */
async function openFrame(
  incoming: AsyncIterator<AttachRequest>,
  clock: Clock,
): Promise<AttachOpen> {
  let cancel = () => {};
  const tooLate = new Promise<never>((_, reject) => {
    const seconds = OPEN_FRAME_MS / 1000;
    const error = fieldInvalid('open', `must come within ${seconds} seconds`);
    cancel = clock.after(OPEN_FRAME_MS, () => reject(error));
  });
  try {
    const first = await Promise.race([incoming.next(), tooLate]);
    if (!first.done && first.value.frame.case === 'open') return first.value.frame.value;
  } finally {
    cancel();
  }
  throw fieldInvalid('open', 'must be the first frame');
}

interface Attached {
  readonly open: AttachOpen;
  readonly incoming: AsyncIterator<AttachRequest>;
  readonly answers: Answers;
  readonly standing: Standing;
  readonly channel: InputChannel;
  readonly delivery: Delivery;
  /** Ends the stream by an error that came late. */
  readonly fail: (error: unknown) => void;
  /** Called when another token has come into force. */
  readonly renewed: () => void;
  /** Aborts when the stream has ended: what arrives later has no effect. */
  readonly ended: AbortSignal;
}

/**
 * Carries out the client's frames in order, each decided when it arrives, until it half-closes. A
 * refused frame is answered by `denied` and has no effect.
 * @throws what ends the whole stream
 */
async function takeFrames(context: ServerContext, attached: Attached): Promise<void> {
  const { gate, supervisor } = context;
  const { open, incoming, answers, standing, channel, delivery, fail, ended } = attached;
  const terminal = stored(standing.permit);
  const { key } = standing.permit;
  const target: Ask['target'] = { kind: 'known', terminal };
  const lane = new InputLane(channel, answers, ended);
  using decisions = new InputDecisions(gate, standing, terminal);

  const resize = (size: TerminalSize | undefined) =>
    perform(gate, standing.callerOf('resize'), { action: 'terminal.resize', target }, ({ lease }) =>
      supervisor.resize(key, parseSize('size', size), lease),
    );

  // The size in `open` is frame 0: refused, it costs the size and not the attachment.
  if (open.size) {
    await resize(open.size).catch((error) => answers.refuse(0, AttachFrameKind.OPEN, error));
  }

  for (let index = 1; ; index += 1) {
    if (answers.isFull) await answers.room();
    const next = await incoming.next();
    if (next.done || ended.aborted) return;
    const { frame } = next.value;
    const refuse = (kind: AttachFrameKind) => (error: unknown) =>
      answers.refuse(index, kind, error);

    switch (frame.case) {
      // Typed bytes go on in order; the next frame is taken before the line discipline has them.
      case 'input': {
        const { data } = frame.value;
        try {
          const { lease } = decisions.remembered(data) ?? (await decisions.decide(data));
          checkInput(data);
          lane.send(data, lease, (error) => {
            try {
              answers.refuse(index, AttachFrameKind.INPUT, error);
            } catch (late) {
              fail(late);
            }
          });
        } catch (error) {
          answers.refuse(index, AttachFrameKind.INPUT, error);
        }
        if (lane.isFull) await lane.room();
        break;
      }

      // The latest size wins, whoever sets it.
      case 'resize':
        await resize(frame.value.size).catch(refuse(AttachFrameKind.RESIZE));
        break;

      // To the foreground process group, past input that waits.
      case 'signal': {
        const signal = signalOf(frame.value.signal);
        const ask: Ask = { action: 'terminal.signal', target, signal };
        await perform(gate, standing.callerOf('signal'), ask, ({ lease }) =>
          supervisor.signal(key, known('signal', signal), lease),
        ).catch(refuse(AttachFrameKind.SIGNAL));
        break;
      }

      // Another token in force, or the old one stays. No decision under the old one is kept.
      case 'reauthenticate':
        await standing
          .reauthenticate(frame.value.token)
          .then(attached.renewed)
          .catch(refuse(AttachFrameKind.REAUTHENTICATE));
        decisions.close();
        delivery.look();
        break;

      case 'open':
        throw fieldInvalid('open', 'comes once, as the first frame');

      case undefined:
        throw fieldInvalid('frame', 'is required');
    }
  }
}
